"""One request ahead of the others: what cannot be measured is one clear line, not a page of zeros."""

from __future__ import annotations

from mmbu_async.bench.record import Phase, Record
from mmbu_async.config import CallSettings
from mmbu_async.errors import EndpointDownError, EndpointError, MmbuError
from mmbu_async.model import FATAL_KINDS, Failure, FailureKind
from mmbu_async.pipeline.explain import explain

TRIES = 3
FIRST_WAIT_S = 2.0
"""Before the second try; before the third, twice as long."""
WORTH_ANOTHER = frozenset({Phase.RATE_LIMIT, Phase.SERVER, Phase.FIRST_BYTE, Phase.CUT})


def complaint(record: Record, kind: FailureKind | None, settings: CallSettings) -> MmbuError | None:
    """What is wrong with an endpoint that answered its first request so; None: nothing."""
    url, said = settings.url, record.message
    if kind in FATAL_KINDS:
        failure = Failure(kind=kind, message=said, status=record.status)
        return EndpointError(explain(failure, settings).replace(", then resume", ""))
    match record.phase:
        case Phase.OK:
            return None
        case Phase.CONNECT:
            return EndpointDownError(
                f"{url} cannot be reached ({said}): check {settings.flag('base_url')}, port and network."
            )
        case Phase.UPLOAD | Phase.FIRST_BYTE:
            return EndpointDownError(
                f"{url} takes the request and gives no answer ({said}): check that a server of the "
                f"{settings.endpoint} format is there, and {settings.flag('timeout')}."
            )
        case Phase.RATE_LIMIT:
            return EndpointError(
                f"{url} says too many requests to a single one ({said}): wait until its limit is free again."
            )
        case Phase.REFUSED:
            return EndpointError(
                f"{url} refuses the request ({said}): an image or a parameter is not to its liking; "
                f"{settings.flag('params')} passes what it wants."
            )
        case Phase.SERVER:
            return EndpointDownError(f"{url} fails with status {record.status} ({said}): look at its log.")
        case Phase.CUT:
            return EndpointError(
                f"{url} breaks its reply off ({said}): something between here and the model cuts it short."
            )
        case Phase.MALFORMED:
            return EndpointError(
                f"{url} answers, but not in the {settings.endpoint} format ({said}): check "
                f"{settings.flag('base_url')} and {settings.flag('endpoint')}."
            )
        case Phase.NO_TOKEN:
            return EndpointError(
                f"{url} replies without a single token: a token limit that reasoning uses up is the usual "
                f"reason; raise {settings.flag('max_tokens')}."
            )
        case _:
            return EndpointDownError(f"{url}: the first request did not end ({said}).")


def remarks(record: Record) -> list[str]:
    """What is odd about an endpoint that can be measured."""
    said = []
    if record.estimated:
        said.append("tells no usage: tokens are estimated (four characters each) and marked so")
    if record.in_one_piece:
        said.append(
            "sends its stream in one piece: something on the way buffers it, and times of tokens mean nothing"
        )
    return said

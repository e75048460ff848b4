"""When many rows in a row fail alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.model import TRANSIENT_KINDS, Failure, FailureKind
from mmbu_async.pipeline.breaker import Breaker, Step


def failure(kind: FailureKind = FailureKind.SERVER_ERROR, status: int | None = 503) -> Failure:
    return Failure(kind=kind, message="no", status=status)


def steps(breaker: Breaker, number: int, now: float, given: Failure | None = None) -> list[Step]:
    return [breaker.failure(given or failure(), now) for _ in range(number)]


def test_a_pause_then_a_few_probes_then_the_end() -> None:
    breaker = Breaker(threshold=4, probes=2, pause_s=30)
    assert steps(breaker, 4, 100.0) == [Step.GO_ON] * 3 + [Step.PAUSE]
    # Calls that were under way when the pause began.
    assert steps(breaker, 9, 129.9) == [Step.GO_ON] * 9
    assert steps(breaker, 2, 130.0) == [Step.GO_ON, Step.STOP]


def test_a_reply_forgets_everything() -> None:
    breaker = Breaker(threshold=4, probes=2, pause_s=30)
    steps(breaker, 3, 100.0)
    breaker.success()
    assert steps(breaker, 4, 100.0) == [Step.GO_ON] * 3 + [Step.PAUSE]
    breaker.success()
    assert steps(breaker, 4, 110.0) == [Step.GO_ON] * 3 + [Step.PAUSE]


def test_a_dead_endpoint_has_many_faces() -> None:
    faces = [
        failure(FailureKind.TIMEOUT, None),
        failure(FailureKind.SERVER_ERROR, 502),
        failure(FailureKind.CONNECTION, None),
        failure(FailureKind.SERVER_ERROR, 504),
        failure(FailureKind.MALFORMED, 200),
    ]
    breaker = Breaker(threshold=5, probes=5, pause_s=30)
    assert [breaker.failure(face, 1.0) for face in faces] == [Step.GO_ON] * 4 + [Step.PAUSE]
    assert [breaker.failure(face, 40.0) for face in faces] == [Step.GO_ON] * 4 + [Step.STOP]


REFUSED = failure(FailureKind.BAD_REQUEST, 400)


def test_rows_refused_alike_stop_without_a_pause() -> None:
    """Waiting does not mend a request that the endpoint does not want."""
    assert steps(Breaker(threshold=3), 3, 1.0, REFUSED) == [Step.GO_ON, Step.GO_ON, Step.STOP]


@pytest.mark.parametrize("session", ["this", "earlier"])
def test_once_a_reply_has_come_it_takes_more_refusals(session: str) -> None:
    """A stretch of rows that break one rule of the endpoint must not stop a run for ever: a resume meets them
    first."""
    breaker = Breaker(threshold=3, refusals=8, proven=session == "earlier")
    if session == "this":
        breaker.success()
    assert steps(breaker, 8, 1.0, REFUSED) == [Step.GO_ON] * 7 + [Step.STOP]


def test_rows_that_fail_differently_do_not_add_up() -> None:
    breaker = Breaker(threshold=3)
    for _ in range(20):
        assert steps(breaker, 2, 1.0, REFUSED) == [Step.GO_ON] * 2
        assert steps(breaker, 2, 1.0, failure(FailureKind.BAD_REQUEST, 413)) == [Step.GO_ON] * 2
        assert steps(breaker, 2, 1.0) == [Step.GO_ON] * 2


FAILURES = [failure(kind, status) for kind in FailureKind for status in (None, 400, 503)]
EVENTS = st.lists(st.tuples(st.sampled_from([None, *FAILURES]), st.floats(0, 20)), max_size=120)


@given(events=EVENTS, threshold=st.integers(1, 6), probes=st.integers(1, 3))
def test_the_breaker_by_its_promises(
    events: list[tuple[Failure | None, float]], threshold: int, probes: int
) -> None:
    breaker = Breaker(threshold=threshold, probes=probes, pause_s=30)
    now = since_reply = 0.0
    paused_at: float | None = None
    for given_failure, later in events:
        now += later
        if given_failure is None:
            breaker.success()
            since_reply, paused_at = 0, None
            continue
        since_reply += 1
        step = breaker.failure(given_failure, now)
        if step is not Step.GO_ON:
            assert since_reply >= min(threshold, probes), "no step within the first few rows after a reply"
        if step is Step.PAUSE:
            assert given_failure.kind in TRANSIENT_KINDS
            assert since_reply >= threshold
            paused_at = now
        elif step is Step.STOP:
            if given_failure.kind in TRANSIENT_KINDS:
                assert paused_at is not None, "waiting was never tried"
                assert now >= paused_at + 30, "stopped during the pause"
            break


@pytest.mark.parametrize("kind", sorted(TRANSIENT_KINDS))
def test_a_run_of_mendable_failures_always_comes_to_an_end(kind: FailureKind) -> None:
    breaker = Breaker()
    given_failure = failure(kind, None)
    taken = [breaker.failure(given_failure, 10.0 * row) for row in range(40)]
    assert taken.index(Step.PAUSE) == 9
    assert Step.STOP in taken

"""What the commands say about batches."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from mmbu_async.cli.batching import batches
from mmbu_async.errors import ConfigError
from mmbu_async.report.batches import print_batches, summary
from mmbu_async.store import BatchRecord, BatchState


def batch(state: BatchState, **changes: object) -> BatchRecord:
    plain: dict[str, object] = {
        "marker": "mmbu0a",
        "run_id": 1,
        "judge_id": None,
        "url": "https://api.example.org/v1",
        "state": state,
        "requests": 1000,
        "bytes": 9,
        "worst_usd": None,
        "created_at": 1_790_000_000.0,
        "sent_at": None,
        "ended_at": None,
        "remote_id": "batch_1",
        "status": "in_progress",
        "finished": 350,
        "words": "",
    }
    return BatchRecord(**(plain | changes))  # type: ignore[arg-type]


def test_a_summary_counts_what_is_out_and_what_became_of_the_rest() -> None:
    assert summary([]) == ""
    found = [batch(state) for state in (BatchState.SUBMITTED, BatchState.FETCHED, BatchState.FETCHED)]
    assert summary(found) == "1 out (1,000 requests, 350 of them done), 2 fetched"
    assert summary([batch(BatchState.LOST), batch(BatchState.REFUSED)]) == "1 refused, 1 never arrived"


def test_each_batch_has_a_line() -> None:
    text = io.StringIO()
    found = [
        batch(BatchState.SUBMITTED),
        batch(BatchState.SUBMITTING, judge_id=2, remote_id="", marker="mmbu0b"),
        batch(BatchState.REFUSED, words="too many\n\x1b[31mtokens"),
    ]
    print_batches(found, {2: "strict"}, Console(file=text, width=140))
    _, first, second, third = text.getvalue().splitlines()
    assert first.split()[:4] == ["batch_1", "model", "1,000", "350"]
    assert first.rstrip().endswith("out: in_progress")
    assert second.split()[:3] == ["mmbu0b", "judge", "strict"]
    assert "not known to have arrived" in second
    assert "refused (too many" in third
    assert "\x1b" not in third
    empty = io.StringIO()
    print_batches([], {}, Console(file=empty, width=140))
    assert "mmbu run --batch" in empty.getvalue()


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "No batch is out: nothing to forget."),
        (1, "1 batch is forgotten;"),
        (2, "2 batches are forgotten;"),
    ],
)
def test_what_was_forgotten_is_said(
    count: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mmbu_async.api.forget_batches", lambda *_, **__: count)
    batches("r", forget=True)
    assert capsys.readouterr().out.startswith(said)


def test_one_cannot_wait_for_what_one_forgets(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give one of them"):
        batches("r", cancel=True, forget=True, store=tmp_path / "s.sqlite")

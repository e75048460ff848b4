"""docs/extraction.md names every rung that a reader stores, and no other."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from benchmarks.extraction_replies import scraps, shaped
from mmbu_async.model import Answer
from mmbu_async.scoring import (
    candidates,
    choices,
    exact,
    mmmu,
    mmmu_open,
    mmmu_sensible,
    pmc_vqa,
    several,
)

PAGE = (Path(__file__).parents[2] / "docs" / "extraction.md").read_text(encoding="utf-8")
BOXES = ("[1, 2, 3, 4]", "[5, 6, 7, 8]", "[5, 6, 7, 9]", "[9, 9, 9, 9]")
EDGES = (
    *(
        "",
        " ",
        "yes",
        "no, it is",
        "It is a yes.",
        "答案：是",
        '{"answer": 4}',
        "so the result is 4",
        "therefore",
    ),
    *("[5,6,7,8]", "<answer>[1,2,3,4]</answer>", "<answer>(5 6 7 9)</answer>", "It is the box [5, 6, 7, 8]."),
)

Read = Callable[[str, Sequence[str]], Answer]
READERS: dict[str, tuple[str, Read]] = {
    "choices": ("closed answers", choices.read_choice),
    "several": ("several labels", several.read_several),
    "candidates": ("candidate boxes", lambda reply, _: candidates.read_candidate(reply, BOXES)),
    "pmc_vqa": ("PMC-VQA", lambda reply, options: pmc_vqa.read_answer(reply, len(options))),
    "mmmu": ("MMMU, official: multiple choice", lambda reply, o: mmmu.read_choice(reply, o, row_id=reply)),
    "mmmu_open": ("MMMU, official: open", lambda reply, _: mmmu_open.read_open(reply)),
    "mmmu_sensible": ("MMMU, second reading", mmmu_sensible.read_choice),
    "mmmu_sensible, open": ("MMMU, second reading", lambda reply, _: mmmu_sensible.read_open(reply)),
    "exact": ("text, yes or no", lambda reply, _: exact.committed_text(reply)),
    "exact, yes or no": ("text, yes or no", lambda reply, _: exact.read_yes_no(reply)),
}


def named(reader: str) -> set[str]:
    """The rungs in the page's first table; `those of` another reader are its own."""
    (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| {reader}"))
    cell = line.split("|")[3]
    rungs = set(re.findall("`([^`]+)`", cell))
    if "choices" in rungs:
        rungs = rungs - {"choices"} | named("closed answers")
    return rungs


def test_every_rung_that_a_reply_can_end_on_is_named_and_every_named_one_is_reached() -> None:
    replies = [(reply.text, reply.options) for reply in shaped(12)] + list(scraps(800))
    replies += [(text, replies[0][1]) for text in EDGES]
    seen: dict[str, set[str]] = {}
    for row, read in READERS.values():
        seen.setdefault(row, set()).update(read(text, options).how for text, options in replies)
    for row, rungs in seen.items():
        assert rungs == named(row), row


@pytest.mark.parametrize("row", sorted({row for row, _ in READERS.values()}))
def test_each_reader_has_its_module(row: str) -> None:
    (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| {row}"))
    (module,) = re.findall("`([^`]+)`", line.split("|")[2])
    assert module in {name.partition(",")[0] for name, (found, _) in READERS.items() if found == row}

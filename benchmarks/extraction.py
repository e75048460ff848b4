"""Our readers of replies beside those of evalscope and lmms-eval, and beside each other.

    python -m benchmarks.extraction [--json FILE] [--page FILE] [--quick]

The other harnesses are installed into throw-away environments, without what they depend on, and only their
readers are loaded. One that cannot be had is skipped, and the result says so. Replies are drawn with a seed.
`--page` puts the tables between the marks of docs/extraction.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.environments import install
from benchmarks.extraction_replies import SEED, SHAPES, Reply, scraps, shaped
from benchmarks.machine import REPOSITORY
from mmbu_async.model import Answer
from mmbu_async.scoring import choices, mmmu, mmmu_sensible, pmc_vqa
from mmbu_async.scoring.mmmu_open import open_candidates

EACH, SCRAPS = 96, 4_000
EXAMPLES = 3
BEGIN, END = "<!-- benchmarks.extraction: begin -->", "<!-- benchmarks.extraction: end -->"
GOLDS = ("5", "1,234", "3.14", "lung", "", ["-5", "x"], "c")
PUBLISHED = REPOSITORY / "tests" / "data" / "mmmu_val_replies.jsonl.gz"

Task = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One of our readers and the other harness's reader of the same name."""

    reader: str
    what: str
    ours: Callable[[Task], Any]
    why: Callable[[Task, Any, Any], str]
    """The reason for a difference between ours and theirs."""


def _unexplained(task: Task, ours: Any, theirs: Any) -> str:
    return "unexplained"


def _choice(task: Task) -> str:
    answer = mmmu.read_choice(task["reply"], task["options"], row_id="r")
    return mmmu.DRAWN if answer.how == mmmu.DRAWN else answer.text


def _why_lmms_eval_differs(task: Task, ours: Any, theirs: Any) -> str:
    """lmms-eval's second and third rung are its own: `B ` with anything before it, and `B.`."""
    reply = task["reply"]
    for mark in ",.!?;:'":
        reply = reply.strip(mark)
    if any(f"{letter} " in f"{reply} " for letter in "ABCD"):
        return (
            "lmms-eval takes a letter with a blank after it, also within a word; the official rules want both"
        )
    if any(f"{letter}." in reply for letter in "ABCD"):
        return "lmms-eval takes a letter with a full stop after it, also within a word; official rules do not"
    return "unexplained"


def _pmc(task: Task, **more: bool) -> str:
    return pmc_vqa.read_answer(task["reply"], len(task["options"]), **more).text


HARNESSES: Mapping[str, Sequence[Pair]] = {
    "evalscope": (
        Pair(reader="single", what="PMC-VQA, one letter", ours=_pmc, why=_unexplained),
        Pair(
            reader="several",
            what="PMC-VQA's rules, several letters",
            ours=lambda task: _pmc(task, multiple=True),
            why=_unexplained,
        ),
        Pair(
            reader="chinese",
            what="PMC-VQA's rules, Chinese marker",
            ours=lambda task: pmc_vqa.read_answer_chinese(task["reply"], len(task["options"])).text,
            why=_unexplained,
        ),
        Pair(
            reader="prompt",
            what="PMC-VQA, prompt",
            ours=lambda task: pmc_vqa.prompt_text(template(), task["reply"], task["options"]),
            why=_unexplained,
        ),
    ),
    "lmms-eval": (
        Pair(reader="choice", what="MMMU, multiple choice", ours=_choice, why=_why_lmms_eval_differs),
        Pair(
            reader="open",
            what="MMMU, candidates of open replies",
            ours=lambda task: sorted(map(repr, open_candidates(task["reply"]))),
            why=_unexplained,
        ),
        Pair(
            reader="right",
            what="MMMU, open replies right or wrong",
            ours=lambda task: mmmu.open_is_right(task["gold"], open_candidates(task["reply"])),
            why=_unexplained,
        ),
    ),
}


def template() -> str:
    """The prompt that PMC-VQA's golden case shows, with its fields."""
    cases = json.loads((REPOSITORY / "tests/data/cases/pmc_vqa_functions.json").read_text("utf-8"))
    case = next(case for case in cases if case["fn"] == "prompt")
    head = case["expected"].split("A,B,C,D")[0]
    return f"{head}{{letters}}.\n\n{{question}}\n\n{{choices}}"


def compare(scratch: Path, tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """Every pair on every task."""
    results: list[dict[str, Any]] = []
    for package, pairs in HARNESSES.items():
        python, version = install(
            scratch, package, "--no-deps", *(["numpy"] if package == "lmms-eval" else [])
        )
        if python is None:
            results.append({"harness": package, "skipped": version})
            continue
        for pair in pairs:
            theirs = run(python, package, [{**task, "reader": pair.reader} for task in tasks])
            results.append({"harness": f"{package} {version}", **differences(pair, tasks, theirs)})
    return results


def run(python: Path, package: str, tasks: Sequence[Task]) -> list[Any]:
    script = Path(__file__).with_name("peer_extraction.py")
    lines = "".join(f"{json.dumps(task)}\n" for task in tasks)
    done = subprocess.run(
        [str(python), str(script), package], input=lines, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def differences(pair: Pair, tasks: Sequence[Task], theirs: Sequence[Any]) -> dict[str, Any]:
    reasons: dict[str, list[dict[str, Any]]] = {}
    for task, other in zip(tasks, theirs, strict=True):
        own = pair.ours(task)
        if own != other:
            reasons.setdefault(pair.why(task, own, other), []).append({**task, "ours": own, "theirs": other})
    return {
        "what": pair.what,
        "replies": len(tasks),
        "differences": sum(map(len, reasons.values())),
        "reasons": [
            {"reason": reason, "replies": len(found), "examples": found[:EXAMPLES]}
            for reason, found in reasons.items()
        ],
    }


READERS: Mapping[str, Callable[[str, Sequence[str]], Answer]] = {
    "PMC-VQA": lambda text, options: pmc_vqa.read_answer(text, len(options)),
    "MMMU": lambda text, options: mmmu.read_choice(text, options, row_id=text),
    "ladder": choices.read_choice,
}
_CHANCE = frozenset({mmmu.DRAWN, pmc_vqa.FALLBACK})


def by_shape(replies: Iterable[Reply]) -> list[dict[str, Any]]:
    """For each shape and reader: replies read as meant, read otherwise, and guessed or drawn."""
    counts = {shape.name: {reader: Counter[str]() for reader in READERS} for shape in SHAPES}
    totals = Counter[str]()
    for reply in replies:
        totals[reply.shape.name] += 1
        for reader, read in READERS.items():
            answer = read(reply.text, reply.options)
            count = counts[reply.shape.name][reader]
            count["chance"] += answer.how in _CHANCE
            count["as meant" if answer.text == reply.letter else "other" if answer.text else "none"] += 1
    return [
        {"shape": shape.name, "replies": totals[shape.name], "why": shape.why, **counts[shape.name]}
        for shape in SHAPES
    ]


def published() -> dict[str, Any]:
    """The official and the sensible reading of published replies to MMMU's validation questions."""
    models: dict[str, Counter[str]] = {}
    with gzip.open(PUBLISHED, "rt", encoding="utf-8") as lines:
        rows = list(map(json.loads, lines))
    for row in rows:
        count = models.setdefault(row["model"], Counter())
        count["rows"] += 1
        if row["question_type"] == "multiple-choice":
            options = list(row["options"].values())
            official = mmmu.read_choice(row["response"], options, row_id=row["id"])
            sensible = mmmu_sensible.read_choice(row["response"], options)
            rights = [mmmu.choice_is_right(row["answer"], one.text) for one in (official, sensible)]
            count["drawn"] += official.how == mmmu.DRAWN
            count["drawn and right"] += official.how == mmmu.DRAWN and rights[0]
            count["not answered"] += not sensible.text
        else:
            rights = [
                mmmu.open_is_right(row["answer"], open_candidates(row["response"])),
                mmmu_sensible.open_is_right(row["answer"], mmmu_sensible.read_open(row["response"]).text),
            ]
        count["official right"] += rights[0]
        count["sensible right"] += rights[1]
        count["differ"] += rights[0] is not rights[1]
    return {"file": PUBLISHED.name, "models": models}


def page(found: Mapping[str, Any]) -> str:
    """The tables, in Markdown."""
    lines = ["| harness | what | replies | differences | reason |", "| --- | --- | ---: | ---: | --- |"]
    for one in found["compared"]:
        if "skipped" in one:
            lines.append(f"| {one['harness']} | | | | {one['skipped']} |")
            continue
        reasons = "; ".join(f"{reason['replies']}: {reason['reason']}" for reason in one["reasons"])
        lines.append(
            f"| {one['harness']} | {one['what']} | {one['replies']:,} | {one['differences']:,} | {reasons} |"
        )
    lines += ["", f"| shape | {' | '.join(READERS)} | why |", f"| --- | {'---: | ' * len(READERS)}--- |"]
    for shape in found["shapes"]:
        cells = [_cell(shape[reader], shape["replies"]) for reader in READERS]
        if len(set(cells)) > 1:
            lines.append(f"| `{shape['shape']}` | {' | '.join(cells)} | {shape['why']} |")
    lines += ["", "| model | rows | official | drawn (right) | sensible | not answered | rows that differ |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for model, count in found["published"]["models"].items():
        official, sensible = (count[f"{which} right"] / count["rows"] for which in ("official", "sensible"))
        lines.append(
            f"| {model} | {count['rows']} | {official:.3f} | {count['drawn']} ({count['drawn and right']}) "
            f"| {sensible:.3f} | {count['not answered']} | {count['differ']} |"
        )
    return "\n".join(lines)


def _cell(count: Mapping[str, int], replies: int) -> str:
    """`as meant / otherwise`, in per cent of the replies, and how many of them by chance."""
    meant, other, chance = (
        round(100 * count.get(key, 0) / replies) for key in ("as meant", "other", "chance")
    )
    return f"{meant} / {other}" + (f" ({chance})" if chance else "")


def tasks(replies: Iterable[Reply], count: int) -> list[Task]:
    found = [{"reply": reply.text, "options": list(reply.options)} for reply in replies]
    found += [{"reply": text, "options": list(options)} for text, options in scraps(count)]
    return [{**task, "gold": GOLDS[number % len(GOLDS)]} for number, task in enumerate(found)]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.extraction",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="write all findings there")
    parser.add_argument(
        "--page", type=Path, default=None, metavar="FILE", help="put the tables into this page"
    )
    parser.add_argument("--quick", action="store_true", help="few replies: only shows that it works")
    flags = parser.parse_args()
    replies = list(shaped(8 if flags.quick else EACH))
    with tempfile.TemporaryDirectory(prefix="mmbu-extraction-") as scratch:
        compared = compare(Path(scratch), tasks(replies, 200 if flags.quick else SCRAPS))
    found = {"seed": SEED, "compared": compared, "shapes": by_shape(replies), "published": published()}
    tables = page(found)
    print(tables)
    if flags.json:
        flags.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    if flags.page:
        before, rest = flags.page.read_text("utf-8").split(BEGIN)
        flags.page.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{rest.split(END)[1]}", "utf-8")
    unexplained = [
        reason for one in compared for reason in one.get("reasons", ()) if reason["reason"] == "unexplained"
    ]
    return int(bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())

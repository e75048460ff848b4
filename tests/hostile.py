"""A run whose every text is foreign and means harm: what each form of a report must show as text.

`hostile_run(make_run)` makes it; the checks below say what harm would be. A form that shows a text may escape
it in its own way, so that tests look for `MARK`, which survives all escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mmbu_async.model import Usage
from mmbu_async.store import RunRecord, Store
from tests.stored_run import CONFIG, IDENTITY, OFFICIAL_JUDGE, MakeRun, Row

MARK = "marked"
"""Is in every hostile text: letters alone, which no form escapes."""

SCRIPT = f"<script>window.{MARK}=1</script>"
IMAGE = f'"\'><img src=x onerror="window.{MARK}=1">'
CLOSERS = (
    f"</td></table></svg></style></textarea></title>--> ]]> {{{{{MARK}}}}} ${{{MARK}}} &lt;b&gt; &#{MARK};"
)
DIRECTION = f"\u202e{MARK}\u202c \u2067isolate\u2069 \u200f\u061c zero\u200bwidth \u2028line\u2029paragraph"
TERMINAL = f"\x1b]0;{MARK}\x07\x1b[2J\x1b[31mred\x1b[0m\x9b31m\x08\x08\x7f"
NUL = f"before\x00{MARK}"
SURROGATE = f"{MARK}\ud800\udc00\ud83d!\udfff"
TABLE = f"| {MARK} | `code` |\n|---|---|\r\n| [link](https://example.org/) | ![](https://example.org/a.png) |"
MARKUP = f"```\n# {MARK}\n```\n~~~\n* **bold** _under_ __dunder__ ~~gone~~ <https://example.org> $x$\n\n---"
RICH = f"[bold red]{MARK}[/] [link=https://example.org]x[/link] [/] [@click=app.bell]"
FORMULA = f'=HYPERLINK("https://example.org/","{MARK}")'
FORMULAS = (FORMULA, f"+{MARK}()", f"-2+3+cmd|'{MARK}'!A0", f"@SUM({MARK})", f"\t={MARK}", f"\r={MARK}")
TAGS = f"\U000e0041\U000e0042{MARK}\U000e007f"
LONG = f"{MARK} <b>" + "0123456789 |`\\" * 7_500
"""Some 100 KB."""
LONG_WORD = MARK + "w" * 100_000
"""The same without a place to break a line."""

TEXTS: Mapping[str, str] = {
    "script": SCRIPT,
    "image": IMAGE,
    "closers": CLOSERS,
    "direction": DIRECTION,
    "terminal": TERMINAL,
    "nul": NUL,
    "surrogate": SURROGATE,
    "table": TABLE,
    "markup": MARKUP,
    "rich": RICH,
    "tags": TAGS,
    **{f"formula {number}": text for number, text in enumerate(FORMULAS)},
}
EVERYTHING = "".join(TEXTS.values())
RUN = f"run {MARK} <i>|`[x](y)`\u202e"
"""A run's name: what `--name` takes."""


def hostile_rows(*, flipped: bool = False) -> list[Row]:
    """A row for each text, with this text wherever a row can hold one; two long ones; one that failed, one
    unjudged, one not asked, one with boxes. `flipped`: what was right is wrong, of the first ones."""
    rows: list[Row] = [
        _row(name, text, judged=bool(number % 2) is not flipped)
        for number, (name, text) in enumerate(TEXTS.items())
    ]
    rows.append(_row("everything", EVERYTHING, judged=True))
    rows.append({**_row("long", SCRIPT, judged=False), "reply": LONG, "committed": LONG, "judge_reply": LONG})
    rows.append({**_row("word", TABLE, judged=True), "reply": LONG_WORD, "committed": LONG_WORD})
    failed = _row("failed", EVERYTHING, judged=True)
    del failed["reply"], failed["judged"]
    rows.append(failed | {"failures": ["server_error", "bad_request"]})
    rows.append({**_row("unjudged", EVERYTHING, judged=True), "judged": None})
    pending = _row("pending", EVERYTHING, judged=True)
    del pending["reply"], pending["judged"], pending["failures"]
    rows.append(pending)
    boxes = _row("boxes", EVERYTHING, judged=True)
    del boxes["judged"]
    boxes["detail"] = {
        "max_iou": 0.25,
        "offered": 1,
        "box_tp": 0,
        "box_fp": 1,
        "box_fn": 1,
        "predicted": [[1, 2, 3, 4]],
        "truth": [[1, 2, 3, 8]],
        "reason": EVERYTHING,
    }
    rows.append(boxes | {"correct": False, "route": "object_detection"})
    return rows


def hostile_run(make_run: MakeRun, *, flipped: bool = False, **options: Any) -> tuple[Store, RunRecord]:
    """The run of `hostile_rows`. `options` go to `make_run` and win."""
    judge = OFFICIAL_JUDGE | {"model": f"judge {EVERYTHING}", "params": {EVERYTHING: EVERYTHING}}
    identity = IDENTITY | {
        "model": EVERYTHING,
        "params": {EVERYTHING: [EVERYTHING]},
        "prompts": {f"suffix {TABLE}": "5" * 64},
    }
    safe = EVERYTHING.replace(SURROGATE, "")
    config = {
        **CONFIG,
        "model": safe,
        "params": {safe: [safe]},
        "task": [safe],
        "where": {safe: safe},
        "judge": {"model": f"judge {safe}", "endpoint": "anthropic", "base_url": None},
    }
    values: dict[str, Any] = {
        "judge": judge,
        "identity": identity,
        "config": config,
        "name": RUN,
        "model": EVERYTHING,
        "source": f"/data/{EVERYTHING}",
    }
    return make_run(hostile_rows(flipped=flipped), **(values | options))


def _row(name: str, text: str, *, judged: bool) -> dict[str, Any]:
    return {
        "id": f"{text}{name}",
        "question": text,
        "answer": text,
        "options": (text, "other"),
        "images": (f"images/{text}.png",),
        "family": f"{text}family",
        "strata": {"task": (text, "plain"), "metadata_modality": (text,), f"{text}attribute": (text,)},
        "fields": {"task": text, f"{text}column": text, "nested": {text: [text]}},
        "reply": text,
        "reasoning": text,
        "finish_raw": text,
        "model": text,
        "request_id": text,
        "failures": ["rate_limit"],
        "failure_message": text,
        "image_note": text,
        "image_scale": 0.5,
        "usage": Usage(input_tokens=10**9, output_tokens=50),
        "committed": text,
        "judged": judged,
        "judge_reply": text,
        "others": {f"second {EVERYTHING}": not judged},
        "detail": {"reason": text, "cluster": text, "chance": 0.25},
    }


# ---------------------------------------------------------------- what harm would be

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def steering(text: str) -> list[str]:
    """Characters that would steer a terminal, flip a line's direction or hide; none may reach a reader."""
    return sorted({f"U+{ord(found):04X}" for found in _STEERING.findall(text)})


_CELL_ENDS = re.compile(r"(?<!\\)(?:\\\\)*\|")


def broken_tables(markdown: str) -> list[str]:
    """Lines of Markdown tables that have another number of cells than their header."""
    broken: list[str] = []
    cells = 0
    for line in outside_fences(markdown):
        if not line.startswith("|"):
            cells = 0
        elif not cells:
            cells = len(_CELL_ENDS.findall(line))
        elif len(_CELL_ENDS.findall(line)) != cells:
            broken.append(line)
    return broken


def outside_fences(markdown: str) -> Iterable[str]:
    """The lines that Markdown would read as its own. Raises where a fence is never closed."""
    fence = ""
    for line in markdown.split("\n"):
        found = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if fence:
            # A fence is closed by a longer or equal one of its kind that stands alone.
            if found and found[1].startswith(fence) and not line.strip(" " + fence[0]):
                fence = ""
        elif found:
            fence = found[1]
        else:
            yield line
    assert not fence, "a code fence is never closed"


_LIVE = re.compile(r"(?<!\\)<[A-Za-z/!?]|(?<!\\)!?\[[^\]\n]*(?<!\\)\]\(")


def live_markup(markdown: str) -> list[str]:
    """Tags, links and images outside of code that a reader of Markdown would bring to life."""
    lines = (re.sub(r"(?<!\\)(`+)(?!`).+?(?<!`)\1(?!`)", "", line) for line in outside_fences(markdown))
    return [line for line in lines if _LIVE.search(line)]

"""The page of figures, from the committed JSON: no figure there is typed by hand.

    python -m benchmarks.table [--check]

Writes the part of docs/benchmarks.md between its two marks, and that of docs/several_machines.md, whose
arithmetic uses the same figures; `--check` only says whether they are up to date.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import scale
from benchmarks.__main__ import NAMES, RESULTS
from benchmarks.machine import REPOSITORY, headline
from benchmarks.scheme import Figure, number

PAGE = REPOSITORY / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.table",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the page is behind")
    flags = parser.parse_args()
    page = PAGE.read_text("utf-8")
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    made = f"{head}{BEGIN}\n\n{figures_page(RESULTS)}\n{END}{tail}"
    if flags.check:
        current = made == page and scale.update(check=True)
        print("up to date" if current else "behind: run python -m benchmarks.table")
        return not current
    PAGE.write_text(made, encoding="utf-8")
    scale.update(check=False)
    return 0


def figures_page(results: Path) -> str:
    found = [json.loads(file.read_text("utf-8")) for file in map(results.joinpath, _files()) if file.exists()]
    return "\n".join(line for one in found for line in _section(one))


def _files() -> list[str]:
    return [f"{name}.json" for name in NAMES]


def _section(content: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {content['benchmark']}"
    yield ""
    yield content["method"]
    yield ""
    yield "| figure | value | aim | |"
    yield "| --- | ---: | ---: | --- |"
    for values in content["figures"]:
        yield _line(Figure(**values))
    yield ""
    quick = " A quick run: it shows that the benchmark works, and no more." if content["quick"] else ""
    yield f"<sub>{headline(content['machine'])}.{quick}</sub>"
    yield ""


def _line(figure: Figure) -> str:
    value = "not measured" if figure.value is None else f"{number(figure.value)} {figure.unit}"
    remark = ", ".join(filter(None, (_marked(figure), figure.note)))
    return f"| {figure.what} | {value} | {figure.aim} | {remark} |"


def _marked(figure: Figure) -> str:
    return "**missed**" if figure.verdict == "missed" else figure.verdict if figure.value is not None else ""


if __name__ == "__main__":
    sys.exit(main())

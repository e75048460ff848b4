"""The figures of the long run in docs/reliability.md, from its committed JSON.

`python -m tests.endurance.figures` writes them into the page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "benchmarks" / "results" / "endurance.json"
PAGE = REPOSITORY / "docs" / "reliability.md"
BEGIN = "<!-- figures: python -m tests.endurance.figures -->"
END = "<!-- end of figures -->"


def section(results: Path = RESULTS) -> str:
    """Markdown; without a committed run it says so."""
    if not results.exists():
        return "No long run is committed yet."
    figures: dict[str, Any] = json.loads(results.read_text("utf-8"))
    machine = figures["machine"]
    rows = [
        ("seeds", figures["seeds"]),
        ("seeds with a broken invariant", figures["broken"]),
        ("rows", figures["rows"]),
        ("rows lost", figures["lost_rows"]),
        ("sessions of the program", figures["sessions"]),
        ("sessions ended by SIGKILL", figures["kills"]),
        ("requests at the simulator", figures["requests"]),
        ("requests that met a fault of the simulator", sum(figures["faults"].values())),
        ("repeated calls", figures["repeated_calls"]),
        ("… whose reply a kill, an abort or a full disk kept from the store", figures["lost_replies"]),
        ("… whose reply was given up before it was read", figures["unread_replies"]),
        ("calls of unknown cost, stored as such", figures["unknown_cost"]),
        ("most memory of a session, MB", round(figures["most_memory_mb"])),
    ]
    lines = [
        f"`{figures['command']}`, {machine['date'][:10]}, commit {', '.join(figures['commits'])}, "
        f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, "
        f"SQLite {machine['sqlite']}; clock: {', '.join(figures['clock'])}; "
        f"store on: {', '.join(figures['disk'])}.",
        "",
        *_table("figure", rows),
        "",
        *_table("what befell running sessions", sorted(figures["blows"].items())),
        "",
        *_table("faults that requests met", sorted(figures["faults"].items())),
        "",
        *_table("exit code of a session", sorted(figures["exit_codes"].items(), key=lambda one: int(one[0]))),
    ]
    return "\n".join(lines)


def _table(name: str, rows: list[tuple[str, Any]]) -> list[str]:
    body = [f"| {what} | {count:,} |" for what, count in rows]
    return [f"| {name} | |", "| --- | ---: |", *body]


def main() -> None:
    """Write the section into the page."""
    head, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{BEGIN}\n{section()}\n{END}{tail}", "utf-8")
    sys.stdout.write(f"wrote the figures of {RESULTS.name} into {PAGE.name}\n")


if __name__ == "__main__":
    main()

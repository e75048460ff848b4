"""Answers that name several labels, `effusion, cardiomegaly`: their parts, and the counts for the micro-F1.

The verdict on the row is the judge's. The counts follow it: a row that the judge calls right has found every
true label; in a row that it calls wrong, the labels whose texts agree are found, the others are one false
positive or one miss each. A row called wrong always has an error: where all texts agree and the judge
disagrees, one label counts as wrong, as it does in a row with one label.
"""

from __future__ import annotations

from collections.abc import Sequence


def normal(label: str) -> str:
    """A label for comparison: case, white space and a full stop at the end do not matter."""
    return " ".join(label.casefold().split()).rstrip(".")


def split_labels(text: str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """The labels between the commas, each once; a known option that holds a comma itself stays whole."""
    known = {normal(option) for option in options}
    longest = 1 + max((option.count(",") for option in options), default=0)
    pieces = [piece.strip() for piece in text.split(",")]
    labels: dict[str, str] = {}
    place = 0
    while place < len(pieces):
        label, used = pieces[place], 1
        for width in range(min(longest, len(pieces) - place), 1, -1):
            whole = ", ".join(pieces[place : place + width])
            if normal(whole) in known:
                label, used = whole, width
                break
        if normal(label):
            labels.setdefault(normal(label), label)
        place += used
    return tuple(labels.values())


def count_labels(true: Sequence[str], given: Sequence[str], *, correct: bool) -> tuple[int, int, int]:
    """(TP, FP, FN) of one judged row with at least one true label."""
    if correct:
        return len(true), 0, 0
    if not given:
        return 0, 0, len(true)
    found = len({normal(label) for label in true} & {normal(label) for label in given})
    if found == len(true) == len(given):
        found -= 1
    return found, len(given) - found, len(true) - found

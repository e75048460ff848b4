"""What the two pages show, as plain values read from a browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mmbu_async.model import ImageRef, PreparedImage
from mmbu_async.store import Browser, Choices, ListedRow, Place, RunRecord
from mmbu_async.store.listed import FLIPPED, FLIPS, OUTCOMES
from mmbu_async.viewer.address import Address
from mmbu_async.viewer.desk import RunRules
from mmbu_async.viewer.drawing import Frame, Layer, layers
from mmbu_async.viewer.pictures import Picture
from mmbu_async.viewer.sides import Side, image_notes, read_side, truth_of

ROWS_A_PAGE = 50
VALUES_A_STRATUM = 100
"""Of an attribute, the most frequent, that can be picked from a list. An address can name any."""

Tally = Counter[tuple[str, str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """One value that a list can be narrowed to, and what that would leave."""

    value: str | None
    """None: all."""
    rows: int
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """Some rows of a filter."""

    run: RunRecord
    beside: RunRecord | None
    rows: Sequence[ListedRow]
    total: int
    """Rows that the filter leaves."""
    first: int
    """Number of the first row shown among them, from 1."""
    more: bool
    """Whether rows follow."""
    selected: int
    """Rows of the run."""
    outcomes: Sequence[Tab]
    flips: Sequence[Tab]
    choices: Choices
    made_at: float
    behind: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRead:
    """One row in one run or two, and where it stands in the list it was opened from."""

    side: Side
    beside: Side | None
    place: Place
    page_after: int
    """Behind which the page of the list begins that has the row."""
    total: int
    made_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownImage:
    """One image of a row with what is drawn over it."""

    index: int
    locator: str
    picture: Picture
    frame: Frame | None
    """None where there is no picture."""
    layers: tuple[Layer, ...]
    notes: tuple[str, ...]


def read_list(browser: Browser, address: Address) -> ListPage:
    wanted = address.wanted
    rows = browser.page(wanted, ROWS_A_PAGE, after=address.after, before=address.before)
    if address.before is not None and len(rows) < ROWS_A_PAGE:
        # The first page is a whole one.
        rows = browser.page(wanted, ROWS_A_PAGE)
    wider = browser.tally(wanted.wider)
    first = browser.place(wanted, rows[0].key).before + 1 if rows else 0
    return ListPage(
        run=browser.run,
        beside=browser.beside,
        rows=rows,
        total=browser.tally(wanted).total(),
        first=first,
        more=bool(rows) and browser.place(wanted, rows[-1].key).next is not None,
        selected=sum(browser.choices.families.values()),
        outcomes=_outcome_tabs(wider, wanted.outcome, wanted.flip),
        flips=_flip_tabs(wider, wanted.outcome, wanted.flip) if browser.beside else (),
        choices=browser.choices,
        made_at=browser.made_at,
        behind=browser.behind,
    )


def read_row(
    browser: Browser, address: Address, key: int, rules: RunRules, beside_rules: RunRules | None
) -> RowRead | None:
    """None where the run has no such row."""
    detail = browser.row(key)
    if detail is None:
        return None
    other = browser.beside_row(key)
    place = browser.place(address.wanted, key)
    begin = place.before // ROWS_A_PAGE * ROWS_A_PAGE
    return RowRead(
        side=read_side(browser, browser.run, detail, rules),
        beside=read_side(browser, browser.beside, other, beside_rules)
        if browser.beside is not None and other is not None and beside_rules is not None
        else None,
        place=place,
        page_after=browser.key_at(address.wanted, begin - 1) or 0 if begin else 0,
        total=browser.tally(address.wanted).total(),
        made_at=browser.made_at,
    )


def show_image(read: RowRead, rules: RunRules, index: int, picture: Picture) -> ShownImage:
    """Boxes are drawn over the first image: rows of boxes have one."""
    row = read.side.row
    ref: ImageRef = row.sample.images[index]
    if not isinstance(picture, PreparedImage):
        return ShownImage(index=index, locator=ref.locator, picture=picture, frame=None, layers=(), notes=())
    frame = Frame(width=picture.width, height=picture.height)
    truth = truth_of(read.side, rules) if index == 0 else None
    drawn: tuple[Layer, ...] = ()
    if truth is not None:
        beside = read.beside.predicted if read.beside is not None else None
        drawn = layers(frame, truth, read.side.predicted or [], beside)
    return ShownImage(
        index=index,
        locator=ref.locator,
        picture=picture,
        frame=frame,
        layers=drawn,
        notes=tuple(image_notes(row, index, picture)),
    )


def _outcome_tabs(wider: Tally, outcome: str | None, flip: str | None) -> list[Tab]:
    counts: Counter[str] = Counter()
    for (name, flipped), rows in wider.items():
        if _flip_fits(flipped, flip):
            counts[name] += rows
    tabs = [Tab(value=None, rows=counts.total(), chosen=outcome is None)]
    tabs += [Tab(value=name, rows=counts[name], chosen=name == outcome) for name in OUTCOMES]
    return [tab for tab in tabs if tab.value is None or tab.rows or tab.chosen]


def _flip_tabs(wider: Tally, outcome: str | None, flip: str | None) -> list[Tab]:
    counts: Counter[str | None] = Counter()
    for (name, flipped), rows in wider.items():
        if outcome in (None, name):
            counts[flipped] += rows
    tabs = [Tab(value=None, rows=counts.total(), chosen=flip is None)]
    both = counts["gained"] + counts["lost"]
    tabs.append(Tab(value=FLIPPED, rows=both, chosen=flip == FLIPPED))
    tabs += [Tab(value=name, rows=counts[name], chosen=name == flip) for name in FLIPS]
    return tabs


def _flip_fits(flipped: str | None, wanted: str | None) -> bool:
    return wanted is None or flipped == wanted or (wanted == FLIPPED and flipped in ("gained", "lost"))

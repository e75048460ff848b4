"""An address and what it says are the same thing, there and back."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.store import RowFilter
from mmbu_async.store.listed import FLIPPED, FLIPS, OUTCOMES
from mmbu_async.viewer.address import Address, BadAddressError, read_address

RUNS = ["night", "day", "a=b&c #?%/ü"]

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
strata = st.lists(st.tuples(texts, texts), max_size=3, unique=True).map(tuple)
filters = st.builds(
    RowFilter,
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12),
    family=st.none() | texts,
    strata=strata,
    outcome=st.none() | st.sampled_from(OUTCOMES),
    how=st.none() | texts,
    finish=st.none() | st.sampled_from(["stop", "length", "refusal", "other"]),
    disputed=st.none() | st.just(True),
    flip=st.none() | st.sampled_from([*FLIPS, FLIPPED]),
)
keys = st.integers(1, 2**63 - 1)


def read(link: str) -> Address:
    """As a server reads it."""
    return read_address(parse_qsl(urlsplit(link).query, keep_blank_values=True), RUNS)


@given(wanted=filters, run=st.permutations(RUNS), pictures=st.booleans(), after=st.just(0) | keys)
def test_an_address_comes_back_as_it_went(
    wanted: RowFilter, run: list[str], pictures: bool, after: int
) -> None:
    address = Address(run=run[0], beside=run[1], wanted=wanted, pictures=pictures, after=after)
    assert read(address.here) == address
    assert read(address.paged(before=7)) == Address(
        run=run[0], beside=run[1], wanted=wanted, pictures=pictures, before=7
    )
    row = read(address.row(5))
    assert (row.run, row.beside, row.wanted) == (run[0], run[1], wanted)


@given(wanted=filters)
def test_a_link_changes_what_it_says_and_nothing_else(wanted: RowFilter) -> None:
    address = Address(run="night", beside="day", wanted=wanted, after=9)
    assert read(address.rows(outcome="wrong")).wanted.outcome == "wrong"
    assert read(address.rows(outcome="wrong")).wanted.wider == wanted.wider
    assert read(address.rows(outcome="wrong")).after == 0
    assert read(address.cleared) == Address(run="night", beside="day")
    for pair in wanted.strata:
        left = read(address.without(*pair)).wanted.strata
        assert left == tuple(other for other in wanted.strata if other != pair)


def test_an_address_is_short_and_can_be_read() -> None:
    wanted = RowFilter(outcome="wrong", strata=(("metadata_stain", "H&E"),), text="Müller")
    assert Address(run="night", wanted=wanted).here == (
        "./?run=night&outcome=wrong&q=M%C3%BCller&stratum=metadata_stain=H%26E"
    )


def test_the_first_run_and_the_one_beside_it_are_meant_where_none_is_named() -> None:
    assert read_address([], RUNS) == Address(run="night", beside="day")
    assert read_address([], ["night"]) == Address(run="night")
    assert read_address([("run", "day")], RUNS) == Address(run="day", beside="night")
    assert read_address([("run", "day"), ("beside", "day")], RUNS) == Address(run="day")


def test_flips_need_two_runs() -> None:
    with pytest.raises(BadAddressError, match="only one here"):
        read_address([("flip", "gained")], ["night"])
    assert "flip" not in Address(run="night", wanted=RowFilter(flip="lost")).with_runs("day", None)


def test_the_form_carries_along_what_it_has_no_field_for() -> None:
    wanted = RowFilter(outcome="wrong", text="x", strata=(("a", "b"),))
    address = Address(run="night", wanted=wanted, pictures=False)
    assert address.hidden("q", "stratum") == [("run", "night"), ("outcome", "wrong"), ("pictures", "0")]

"""Datasets: taken in once, known again by content, refused where ids are not unique."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from mmbu_async.errors import DataError
from mmbu_async.model import ImageRef, Sample
from mmbu_async.store import DatasetRecord, Store

if TYPE_CHECKING:
    from tests.conftest import StoreKit


def sample(position: int, **changes: Any) -> Sample:
    values: dict[str, Any] = {
        "id": f"row-{position}",
        "position": position,
        "question": "Which?",
        "answer": "a",
        "options": ("a", "b"),
        "route": "single_answer",
        "images": (ImageRef(locator=f"{position}.png"),),
        "strata": {"stain": ("H&E",)},
        "fields": {"unique_id": f"row-{position}", "stain": "H&E"},
    }
    return Sample(**(values | changes))


def register(
    store: Store, samples: Iterable[Sample], *, source: str = "here", stamp: str = "s1"
) -> DatasetRecord:
    return store.register_dataset("bench", source, stamp, ((one, "family") for one in samples), now=5.0)


def stored(store: Store, dataset: DatasetRecord) -> list[Sample]:
    run = store.create_run(
        name=f"run of {dataset.id}",
        benchmark="bench",
        dataset_id=dataset.id,
        model="m",
        endpoint="openai",
        host="h",
        identity={},
        config={},
        package_version="0",
        now=6.0,
    )
    store.select(run.id, None, None)
    return [row.sample for row in store.rows(run.id)]


def test_a_dataset_is_given_back_as_it_was_taken_in(kit: StoreKit) -> None:
    store = kit.open()
    samples = [sample(n) for n in range(2500)]
    dataset = register(store, samples)
    assert (dataset.rows, dataset.source, dataset.stamp, dataset.created_at) == (2500, "here", "s1", 5.0)
    assert stored(store, dataset) == samples


def test_samples_are_streamed(kit: StoreKit) -> None:
    """No more rows are held than a page of them, whatever the size of the dataset."""
    alive = 0
    most = 0

    class Counted(dict[str, str]):
        def __init__(self) -> None:
            nonlocal alive, most
            super().__init__(a="b")
            alive += 1
            most = max(most, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    dataset = register(kit.open(), (sample(n, fields=Counted()) for n in range(10_000)))
    assert dataset.rows == 10_000
    assert most < 3000


def test_the_same_rows_from_another_source_are_the_same_dataset(kit: StoreKit) -> None:
    store = kit.open()
    first = register(store, (sample(n) for n in range(30)), source="jsonl", stamp="s1")
    # Another format gives the same columns in another order.
    turned = (
        sample(n, fields={"stain": "H&E", "unique_id": f"row-{n}"}, strata={"stain": ("H&E",)})
        for n in range(30)
    )
    second = register(store, turned, source="tsv", stamp="s2")
    assert (second.id, second.fingerprint, second.rows) == (first.id, first.fingerprint, 30)
    assert (second.source, second.stamp) == ("tsv", "s2")
    assert store.find_dataset("bench", stamp="s2") == second
    assert store.find_dataset("bench", stamp="s1") is None
    assert store.find_dataset("bench", fingerprint=first.fingerprint) == second
    assert store.find_dataset("another", stamp="s2") is None
    assert len(stored(store, second)) == 30


CHANGES: list[dict[str, Any]] = [
    {"id": "another"},
    {"question": "Which one?"},
    {"answer": "b"},
    {"options": ("b", "a")},
    {"route": "multi_label"},
    {"images": (ImageRef(locator="other.png"),)},
    {"fields": {"unique_id": "row-1", "stain": "PAS"}},
]


@pytest.mark.parametrize("change", CHANGES, ids=[next(iter(change)) for change in CHANGES])
def test_any_change_of_content_is_another_dataset(kit: StoreKit, change: dict[str, Any]) -> None:
    store = kit.open()
    rows = [sample(0), sample(1), sample(2)]
    first = register(store, rows)
    second = register(store, [rows[0], replace(rows[1], **change), rows[2]])
    assert second.id != first.id
    assert second.fingerprint != first.fingerprint
    assert [one.id for one in stored(store, first)] == ["row-0", "row-1", "row-2"]
    assert len(stored(store, second)) == 3


def test_rows_that_differ_between_two_datasets_are_named_in_order(kit: StoreKit) -> None:
    store = kit.open()
    first = register(store, [sample(n) for n in range(6)])
    rows = [sample(n) for n in range(5)]
    rows[3] = replace(rows[3], answer="b")
    rows[1] = replace(rows[1], fields={})
    second = register(store, [*rows, sample(5, id="new")])
    changed = store.changed_rows(first.id, second.id)
    assert (changed[:2], sorted(changed[2:])) == (["row-1", "row-3"], ["new", "row-5"])
    assert store.changed_rows(first.id, first.id) == ["row-0", "row-1", "row-2", "row-3", "row-4", "row-5"]


def test_columns_are_those_of_any_row(kit: StoreKit) -> None:
    store = kit.open()
    dataset = register(store, [sample(0), sample(1, fields={"stain": None, "organ": "liver"})])
    assert sorted(store.columns(dataset.id)) == ["organ", "stain", "unique_id"]


def test_order_is_content(kit: StoreKit) -> None:
    store = kit.open()
    first = register(store, [sample(0), sample(1)])
    second = register(store, [sample(0, id="row-1"), sample(1, id="row-0")])
    assert second.fingerprint != first.fingerprint


def test_doubled_ids_are_refused_by_name_and_nothing_is_kept(kit: StoreKit) -> None:
    store = kit.open()
    rows = [*(sample(n) for n in range(1500)), sample(1500, id="row-3"), sample(1501, id="row-700")]
    with pytest.raises(DataError, match=r"here: row ids that occur more than once: 'row-3', 'row-700';"):
        register(store, rows)
    assert store.find_dataset("bench") is None
    assert register(store, rows[:10]).rows == 10


def test_of_many_doubled_ids_ten_are_named(kit: StoreKit) -> None:
    rows = [*(sample(n) for n in range(20)), *(sample(20 + n, id=f"row-{n}") for n in range(13))]
    with pytest.raises(DataError) as caught:
        register(kit.open(), rows)
    assert "'row-0'" in str(caught.value)
    assert "'row-9' and 3 more" in str(caught.value)
    assert "'row-10'" not in str(caught.value)


def test_no_rows_are_refused(kit: StoreKit) -> None:
    with pytest.raises(DataError, match=r"here: holds no rows"):
        register(kit.open(), [])


def test_a_source_that_breaks_off_leaves_nothing(kit: StoreKit) -> None:
    def broken() -> Iterator[Sample]:
        yield from (sample(n) for n in range(1200))
        raise DataError("metadata.jsonl, line 1201: not JSON.")

    store = kit.open()
    with pytest.raises(DataError, match="line 1201"):
        register(store, broken())
    assert store.find_dataset("bench") is None


def test_a_slow_source_does_not_lock_the_store(kit: StoreKit) -> None:
    store, other = kit.open(), kit.open(busy_timeout_s=0.0)

    def slow() -> Iterator[Sample]:
        for n in range(3000):
            if n == 2500:
                kit.begin(other, 5)
            yield sample(n)

    dataset = register(store, slow())
    assert [one.position for one in stored(store, dataset)] == list(range(3000))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a\0b", "a\0b"),
        ("\ud800 alone", "\ufffd alone"),
        ("pair \ud83d\ude00", "pair \U0001f600"),
        ("\u202eright to left\u202c \u200f\u2066", "\u202eright to left\u202c \u200f\u2066"),
        ("\ufeffmark", "\ufeffmark"),
        ("", ""),
    ],
)
def test_odd_texts_are_kept_as_far_as_they_can_be(kit: StoreKit, given: str, kept: str) -> None:
    store = kit.open()
    row = sample(0, question=given, options=(given,), fields={given: [given, 10**30, float("nan"), None]})
    dataset = register(store, [row, sample(1)])
    found = stored(store, dataset)[0]
    assert found.question == kept
    assert found.options == (kept,)
    assert found.fields == {kept: [kept, str(10**30), None, None]}
    assert register(store, [row, sample(1)]).id == dataset.id

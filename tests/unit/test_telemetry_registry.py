"""The text that Prometheus scrapes, read back by Prometheus' own parser."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mmbu_async.telemetry.registry import Registry

Read = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(registry: Registry) -> Read:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(registry.text())
        for sample in family.samples
    }


def test_counters_by_their_labels() -> None:
    registry = Registry()
    counter = registry.counter("mmbu_x_total", "Of x.", ("a", "b"))
    counter.of("1", "2").add()
    counter.of("1", "2").add(2)
    counter.of("1", "3").add(0.25)
    assert read(registry) == {
        ("mmbu_x_total", (("a", "1"), ("b", "2"))): 3,
        ("mmbu_x_total", (("a", "1"), ("b", "3"))): 0.25,
    }
    with pytest.raises(ValueError, match="has the labels"):
        counter.of("1")


def test_a_histogram_counts_each_value_in_every_bucket_above_it() -> None:
    registry = Registry()
    found = registry.histogram("mmbu_s", "Seconds.", (0.5, 1, 2.5), ("a",)).of("x")
    for value in (0.1, 0.5, 0.75, 2.5, 9):
        found.add(value)
    values = read(registry)
    assert [
        values["mmbu_s_bucket", (("a", "x"), ("le", bound))] for bound in ("0.5", "1", "2.5", "+Inf")
    ] == [
        2,
        3,
        4,
        5,
    ]
    assert values["mmbu_s_sum", (("a", "x"),)] == pytest.approx(12.85)
    assert values["mmbu_s_count", (("a", "x"),)] == 5


@pytest.mark.parametrize("text", ['say "hi"', "back\\slash", "two\nlines", "naïve 模型", "a{b}=c,d", ""])
def test_hostile_labels_come_back_as_they_were(text: str) -> None:
    registry = Registry()
    registry.counter("mmbu_x_total", 'Of "x"\\\nand more.', ("model",)).of(text).add()
    assert read(registry) == {("mmbu_x_total", (("model", text),)): 1}


def test_half_a_character_spoils_nothing() -> None:
    registry = Registry()
    registry.counter("mmbu_x_total", "Of x.", ("model",)).of("m\ud800").add()
    assert registry.text().encode()
    assert read(registry) == {("mmbu_x_total", (("model", "m?"),)): 1}


def test_what_is_asked_is_asked_anew_each_time_and_nothing_is_nothing() -> None:
    registry = Registry()
    now: list[tuple[tuple[str, ...], float]] = []
    registry.asked("mmbu_now", "Now.", lambda: now, ("who",))
    assert registry.text() == ""
    now.append((("me",), 2.5))
    assert read(registry) == {("mmbu_now", (("who", "me"),)): 2.5}
    now[0] = (("me",), float("inf"))
    assert read(registry) == {("mmbu_now", (("who", "me"),)): float("inf")}


def test_a_name_has_one_meaning() -> None:
    registry = Registry()
    registry.counter("mmbu_x_total", "Of x.")
    with pytest.raises(ValueError, match="already"):
        registry.counter("mmbu_x_total", "Of something else.")

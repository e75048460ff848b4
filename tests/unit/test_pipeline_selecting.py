"""`--task` and `--where`."""

from __future__ import annotations

import pytest

from mmbu_async.errors import ConfigError
from mmbu_async.model import Json, Sample
from mmbu_async.pipeline.selecting import check_columns, keeper


def sample(**fields: Json) -> Sample:
    return Sample(id="1", position=0, question="", answer="", route="", fields=fields)


NUCLEI = sample(task="Counting | nuclei | H&E ", stain="H&E", size=0.25, checked=True, note=None)


def keeps(tasks: tuple[str, ...] = (), where: dict[str, str] | None = None) -> bool:
    keep = keeper(tasks, where or {})
    assert keep is not None
    return keep(NUCLEI)


@pytest.mark.parametrize(
    ("tasks", "kept"),
    [
        (("counting",), True),
        (("COUNT",), True),
        (("counting | nuclei",), True),
        (("nuclei",), True),
        (("h&e",), True),
        (("nucle",), False),
        (("classification",), False),
        (("classification", "nuclei"), True),
    ],
)
def test_a_task_matches_from_its_start_or_by_topic(tasks: tuple[str, ...], kept: bool) -> None:
    assert keeps(tasks) == kept


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ({"stain": "H&E"}, True),
        ({"stain": " h&e "}, True),
        ({"stain": "H&"}, False),
        ({"size": "0.25"}, True),
        ({"checked": "true"}, True),
        ({"note": ""}, True),
        ({"stain": "h&e", "size": "1"}, False),
        ({"absent": "x"}, False),
    ],
)
def test_a_column_matches_by_its_whole_value(where: dict[str, str], kept: bool) -> None:
    assert keeps(where=where) == kept


def test_both_must_hold() -> None:
    assert keeps(("counting",), {"stain": "h&e"})
    assert not keeps(("counting",), {"stain": "pas"})
    assert not keeps(("detection",), {"stain": "h&e"})


def test_nothing_named_keeps_everything() -> None:
    assert keeper((), {}) is None


def test_an_unknown_column_is_named_with_its_neighbour() -> None:
    check_columns({"stain": "x"}, ["stain", "size"])
    with pytest.raises(
        ConfigError, match=r"--where stian=x: the data has no such column; did you mean 'stain'"
    ):
        check_columns({"stian": "x"}, ["stain", "size"])
    with pytest.raises(ConfigError, match=r"columns are: stain, size\."):
        check_columns({"zzz": "x"}, ["stain", "size"])

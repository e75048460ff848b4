import pytest

from mmbu_async.report import words
from mmbu_async.store import CallTotals


@pytest.mark.parametrize(
    ("usd", "shown"),
    [(0, "$0.00"), (1234.5, "$1,234.50"), (0.1, "$0.10"), (0.0123, "$0.0123"), (0.00001, "under $0.0001")],
)
def test_money(usd: float, shown: str) -> None:
    assert words.money(usd) == shown


@pytest.mark.parametrize(
    ("spend", "shown"),
    [
        (CallTotals(), "$0.00"),
        (CallTotals(cost_usd=2.5), "$2.50"),
        (CallTotals(cost_unknown=3), "unknown"),
        (CallTotals(cost_usd=2.5, cost_unknown=3), "over $2.50"),
    ],
)
def test_cost_never_hides_what_is_unknown(spend: CallTotals, shown: str) -> None:
    assert words.cost(spend) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0.0 s"),
        (9.94, "9.9 s"),
        (9.97, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (61, "1 min 1 s"),
        (3599.6, "1 h 0 min"),
        (100_000, "27 h 46 min"),
    ],
)
def test_duration(seconds: float, shown: str) -> None:
    assert words.duration(seconds) == shown


@pytest.mark.parametrize(
    ("rate", "shown"),
    [(None, "unknown"), (0.0123, "0.0123 rows/s"), (25.04, "25 rows/s"), (1234.5, "1,234 rows/s")],
)
def test_rate(rate: float | None, shown: str) -> None:
    assert words.rate(rate) == shown


@pytest.mark.parametrize(("number", "shown"), [(0, "0 rows"), (1, "1 row"), (3147, "3,147 rows")])
def test_rows(number: int, shown: str) -> None:
    assert words.rows(number) == shown


def test_settings_are_written_as_typed() -> None:
    assert [words.setting(value) for value in ("low", 0.0, None, True, ["a"], {"é": 1})] == [
        "low",
        "0.0",
        "none",
        "true",
        '["a"]',
        '{"é": 1}',
    ]

"""Settings, distributions and fault rules of the simulator."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mmbu_async.errors import ConfigError
from mmbu_async.simulator.config import Latency, SimulatorConfig, unit
from mmbu_async.simulator.faults import Fault, FaultRule, choose


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.4", Latency("fixed", 0.4)),
        ("fixed:1", Latency("fixed", 1.0)),
        ("uniform:0.1,0.5", Latency("uniform", 0.1, 0.5)),
        ("lognormal:0.4,0.5", Latency("lognormal", 0.4, 0.5)),
        ("exponential:2", Latency("exponential", 2.0)),
    ],
)
def test_latency_is_read_from_a_flag(text: str, expected: Latency) -> None:
    assert Latency.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "soon", "-1", "uniform:1", "uniform:2,1", "lognormal:0,1", "gamma:1,2", "fixed:nan", "fixed:1,2"],
)
def test_an_unreadable_latency_is_a_named_error(text: str) -> None:
    with pytest.raises(ConfigError):
        Latency.parse(text)


@pytest.mark.parametrize(
    ("latency", "mean", "median"),
    [
        (Latency("uniform", 1, 3), 2.0, 2.0),
        (Latency("exponential", 2), 2.0, 2 * np.log(2)),
        (Latency("lognormal", 0.4, 0.5), 0.4 * np.exp(0.125), 0.4),
        (Latency("fixed", 0.7), 0.7, 0.7),
    ],
)
def test_drawn_latencies_follow_their_distribution(latency: Latency, mean: float, median: float) -> None:
    drawn = [latency.quantile(unit(3, "latency", index)) for index in range(20_000)]
    assert np.mean(drawn) == pytest.approx(mean, rel=0.02)
    assert latency.quantile(0.5) == pytest.approx(median)
    assert np.median(drawn) == pytest.approx(median, rel=0.02)
    assert np.isfinite([latency.quantile(0.0), latency.quantile(1.0)]).all()


def test_the_draw_depends_on_every_argument_and_nothing_else() -> None:
    assert unit(1, "a", 2) == unit(1, "a", 2)
    assert (
        len({unit(1, "a", 2), unit(2, "a", 2), unit(1, "b", 2), unit(1, "a", 3), unit(1, "a", "2", "")}) == 5
    )
    assert 0 <= unit(0) < 1


@pytest.mark.parametrize(
    "change",
    [
        *({"rpm": 0}, {"tpm": -1}, {"max_concurrent": 0}, {"limit_burst_s": 0}),
        *({"retry_after_style": "politely"}, {"port": 65_536}, {"port": -1}),
    ],
)
def test_settings_that_mean_nothing_are_named_errors(change: dict[str, float | str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(change))):
        dataclasses.replace(SimulatorConfig(), **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("server_error=0.05", FaultRule(fault=Fault.SERVER_ERROR, rate=0.05)),
        ("no_verdict@judge=first:1", FaultRule(fault=Fault.NO_VERDICT, role="judge", first=1)),
        ("bad_request=text:row 7: bad", FaultRule(fault=Fault.BAD_REQUEST, text="row 7: bad")),
        ("reset=requests:10-20", FaultRule(fault=Fault.RESET, requests=(10, 20))),
        ("reset@model=requests:3", FaultRule(fault=Fault.RESET, role="model", requests=(3, 3))),
        ("stall=seconds:5-7.5", FaultRule(fault=Fault.STALL, seconds=(5, 7.5))),
    ],
)
def test_a_fault_rule_is_read_from_a_flag(text: str, expected: FaultRule) -> None:
    assert FaultRule.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "server_error",
        "meteor=0.1",
        "reset=1.5",
        "reset=-0.1",
        "reset@nurse=0.1",
        "reset=text:",
        "reset=requests:a-b",
        "reset=seconds:5",
        "reset=often:3",
    ],
)
def test_an_unreadable_rule_is_a_named_error(text: str) -> None:
    with pytest.raises(ConfigError):
        FaultRule.parse(text)


def test_a_rule_with_two_conditions_is_refused() -> None:
    with pytest.raises(ConfigError, match="exactly one"):
        FaultRule(fault=Fault.RESET, rate=0.1, first=1)


def test_a_schedule_file_has_a_rule_a_line() -> None:
    text = "# the night\n\nreset=requests:1-2\n  overloaded@judge=seconds:0-9  \n"
    assert FaultRule.parse_schedule(text) == (
        FaultRule(fault=Fault.RESET, requests=(1, 2)),
        FaultRule(fault=Fault.OVERLOADED, role="judge", seconds=(0, 9)),
    )


def _chosen(
    *rules: str,
    role: str = "model",
    text: str = "What is this?",
    number: int = 1,
    seconds: float = 0.0,
    occurrence: int = 1,
    drawn: float = 0.5,
) -> Fault | None:
    return choose(
        [FaultRule.parse(rule) for rule in rules],
        role=role,
        text=text,
        number=number,
        seconds=seconds,
        occurrence=occurrence,
        draw=lambda: drawn,
    )


def test_texts_win_over_schedules_over_first_occurrences_over_rates() -> None:
    rules = ["think=1", "reset=first:1", "drip=requests:5-6", "refusal=text:this"]
    assert _chosen(*rules, number=5) is Fault.REFUSAL
    assert _chosen(*rules, number=5, text="other") is Fault.DRIP
    assert _chosen(*rules, number=7, text="other") is Fault.RESET
    assert _chosen(*rules, number=7, text="other", occurrence=2) is Fault.THINK


def test_schedule_ends_are_as_documented() -> None:
    assert [number for number in range(12) if _chosen("reset=requests:3-5", number=number)] == [3, 4, 5]
    assert _chosen("reset=seconds:1-2", seconds=1.0) is Fault.RESET
    assert _chosen("reset=seconds:1-2", seconds=2.0) is None


def test_a_rule_for_one_role_spares_the_other() -> None:
    assert _chosen("reset@judge=1", role="model") is None
    assert _chosen("reset@judge=1", role="judge") is Fault.RESET


def test_rates_share_one_draw_so_that_they_add_up() -> None:
    rules = ["reset=0.25", "think=0.25"]
    assert [_chosen(*rules, drawn=drawn) for drawn in (0.0, 0.24, 0.25, 0.49, 0.5, 0.99)] == [
        Fault.RESET,
        Fault.RESET,
        Fault.THINK,
        Fault.THINK,
        None,
        None,
    ]


def test_a_rate_of_zero_never_strikes_and_of_one_always() -> None:
    assert _chosen("reset=0", drawn=0.0) is None
    assert _chosen("reset=1", drawn=1 - 2**-53) is Fault.RESET

"""What a bench does when little is said: how much of each load, and what of it is warm-up."""

from __future__ import annotations

from typing import Any

import pytest

from mmbu_async.bench.arrivals import CONSTANT
from mmbu_async.bench.plan import Closed, Ends, Open, StagePlan, Warmup
from mmbu_async.bench.spec import BesideConfig, Spec
from mmbu_async.config import RunConfig
from mmbu_async.errors import ConfigError
from tests import bench_kit


def spec(**changes: Any) -> Spec:
    config = RunConfig.model_validate({"model": "m", "base_url": "http://test.example/v1"})
    return Spec(config=config, **changes)


def plan(**changes: Any) -> StagePlan:
    return spec(**changes).plans()[0]


def users(count: int) -> dict[str, Any]:
    return {"loads": (Closed(concurrency=count),)}


def rate(count: float) -> dict[str, Any]:
    return {"loads": (Open(rate=count, arrivals=CONSTANT),)}


def test_by_default_each_load_gets_200_requests_or_six_a_user_and_two_minutes_at_most() -> None:
    ends = [plan.ends for plan in spec().plans()]
    assert [end.requests for end in ends] == [200, 200, 200, 384]
    assert {end.seconds for end in ends} == {120.0}
    assert plan(**rate(50)).ends.requests == 200


def test_what_the_user_says_is_not_made_more() -> None:
    assert plan(**users(64), ends=Ends(requests=200, seconds=120.0)).ends == Ends(requests=200, seconds=120.0)
    assert plan(**users(64), requests_in_all=100).ends == Ends(requests=100)
    assert plan(**users(64), ends=Ends(seconds=9.0)).ends == Ends(seconds=9.0)
    assert plan(**users(1), ends=Ends(interval=0.05)).ends == Ends(interval=0.05, seconds=600.0)


@pytest.mark.parametrize(
    ("asked", "warmup"),
    [
        (users(1) | {"ends": Ends(requests=100)}, Warmup(requests=10)),
        (users(16) | {"ends": Ends(requests=100)}, Warmup(requests=16)),
        (users(64) | {"ends": Ends(requests=100)}, Warmup(requests=50)),
        (users(4) | {"ends": Ends(requests=9_000)}, Warmup(requests=200)),
        (users(4) | {"ends": Ends(seconds=60.0)}, Warmup(requests=4, seconds=6.0)),
        (rate(4) | {"ends": Ends(seconds=900.0)}, Warmup(seconds=30.0)),
        (rate(4) | {"ends": Ends(requests=100)}, Warmup(requests=10)),
        (users(4) | {"warmup": Warmup()}, Warmup()),
    ],
)
def test_warm_up_is_a_tenth_and_the_first_request_of_each_user(asked: dict[str, Any], warmup: Warmup) -> None:
    assert plan(**asked).warmup == warmup


def test_where_two_take_turns_each_block_is_half_and_has_its_own_warm_up() -> None:
    beside = BesideConfig.model_validate({"model": "other", "base_url": "http://test.example/v1"})
    made = plan(**users(16), beside=beside, ends=Ends(requests=100, seconds=60.0))
    assert made.ends == Ends(requests=50, seconds=30.0)
    assert made.warmup == Warmup(requests=16)


def test_fewer_requests_in_all_than_stages_are_refused() -> None:
    with pytest.raises(ConfigError, match="4 stages"):
        spec(requests_in_all=3)


def test_a_target_is_printed_without_its_key() -> None:
    assert "sk-canary" not in repr(bench_kit.target())

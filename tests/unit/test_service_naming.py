"""What users of the service may name, and what becomes of it in a run's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mmbu_async.config import RunConfig, build_config
from mmbu_async.endpoints.shared import KeyLimits
from mmbu_async.errors import ConfigError
from mmbu_async.service.naming import Names, limits_of
from mmbu_async.service.settings import EndpointSettings, ServiceConfig, data_sets, load_service

GATE = EndpointSettings(
    name="gate", base_url="http://gate.example/v1", api_key_env="GATE_KEY", rpm=100, concurrency=7
)
CLAUDE = EndpointSettings(name="claude", endpoint="anthropic", models=("claude-sonnet-5",))
OTHER = EndpointSettings(name="other", base_url="http://other.example/v1")


def names(*endpoints: EndpointSettings, **changes: Any) -> Names:
    return Names(ServiceConfig(endpoint=endpoints, data={"mini": "/data/mini"}, **changes))


def whole(found: Names, **settings: Any) -> RunConfig:
    return build_config(found.whole({"model": "m", **settings}))


def test_names_become_addresses_and_places() -> None:
    config = whole(names(GATE, CLAUDE, OTHER), endpoint="gate", data="mini")
    assert (config.url, config.key_variable, config.data) == (
        "http://gate.example/v1",
        "GATE_KEY",
        "/data/mini",
    )
    # The judge's model is one of a single endpoint's.
    assert (config.judge.endpoint, config.judge.base_url) == ("anthropic", None)


def test_without_a_name_the_only_endpoint_is_meant_or_that_of_the_model() -> None:
    assert whole(names(GATE, CLAUDE)).url == "http://gate.example/v1"
    assert whole(names(GATE, OTHER, CLAUDE), model="claude-sonnet-5").endpoint == "anthropic"
    with pytest.raises(ConfigError, match="endpoint: is missing; name one of 'gate', 'other'"):
        whole(names(GATE, OTHER))
    assert whole(Names(ServiceConfig())).url == "https://api.openai.com/v1"


def test_a_judge_that_nobody_can_reach_is_told_where_one_is_needed() -> None:
    found = names(GATE, OTHER)
    config = whole(found, endpoint="gate")
    found.check(config, judged=False)
    with pytest.raises(ConfigError, match="judge claude-sonnet-5 has no endpoint of this service"):
        found.check(config, judged=True)


def test_settings_of_another_day_must_call_on_an_endpoint_of_the_service() -> None:
    found = names(GATE, CLAUDE)
    found.check(whole(found), judged=True)
    for changes in (
        {"base_url": "http://elsewhere.example/v1"},
        {"base_url": "http://gate.example/v1", "api_key_env": "HOME"},
        {"base_url": None},
    ):
        with pytest.raises(ConfigError, match="the model has no endpoint of this service"):
            found.check(build_config({"model": "m", **changes}), judged=False)
    with pytest.raises(ConfigError, match="judge x: endpoint 'claude' is not for 'x'"):
        found.check(build_config({"model": "m", "judge": {"model": "x"}}), judged=True, asked=False)


def test_one_address_may_have_a_name_for_each_model() -> None:
    first = GATE.model_copy(update={"name": "first", "models": ("a",), "rpm": 1.0})
    second = GATE.model_copy(update={"name": "second", "models": ("b",), "rpm": 2.0})
    found = names(first, second)
    assert [found.key_limits(whole(found, model=model)).rpm for model in "ab"] == [1.0, 2.0]
    assert names(GATE).key_limits(whole(names(GATE))) == KeyLimits(concurrency=7, rpm=100)
    assert names(OTHER).key_limits(whole(names(GATE))) == KeyLimits()


@pytest.mark.parametrize(
    "settings",
    [
        {"store": "x.sqlite"},
        {"image_limits": "/etc/passwd"},
        {"executor": "dask"},
        {"dask_options": {"python": "/bin/sh"}},
        {"panel": [{"model": "x", "base_url": "http://mine.example"}]},
        {"panel": "panel.toml"},
        {"judge": "x"},
        {"judge": {"api_key_env": "HOME"}},
        {"data": "/data/mini"},
        {"data": 5},
        {"benchmark": "../secret"},
        {"benchmark": ["x"]},
        {"endpoint": "http://mine.example"},
        {"endpoint": {}},
    ],
)
def test_nobody_names_a_path_an_address_or_a_variable(settings: dict[str, Any]) -> None:
    found = names(GATE, CLAUDE)
    with pytest.raises(ConfigError):
        found.whole({"model": "m", **settings})
    with pytest.raises(ConfigError):
        found.changes(settings)


def test_a_description_of_a_benchmark_is_known_by_name(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    assert names(GATE, benchmarks={"mine": file}).whole({"model": "m", "benchmark": "mine"})[
        "benchmark"
    ] == str(file)
    with pytest.raises(ConfigError, match="did you mean 'mmbu-public'"):
        names(GATE).whole({"model": "m", "benchmark": "mmbu-pubic"})


def test_changes_touch_what_they_name() -> None:
    found = names(GATE, CLAUDE)
    assert found.changes({"rpm": 5}) == {"rpm": 5}
    assert found.changes({"judge": {"rpm": 5}}) == {"judge": {"rpm": 5}}
    moved = found.changes({"judge": {"model": "claude-sonnet-5"}})
    assert moved["judge"]["endpoint"] == "anthropic"


def test_an_endpoint_that_has_moved_is_found_by_its_name() -> None:
    moved = GATE.model_copy(update={"base_url": "http://new.example/v1"})
    settings = {"model": "m", "endpoint": "gate", "judge": {"model": "claude-sonnet-5", "endpoint": "claude"}}
    assert names(moved, CLAUDE).addresses(settings) == {
        "base_url": "http://new.example/v1",
        "api_key_env": "GATE_KEY",
        "judge": {"base_url": None, "api_key_env": None},
    }


def test_limits_are_read_by_side() -> None:
    assert limits_of({"rpm": None, "judge": {"tpm": 5}}) == {"": {"rpm": None}, "judge": {"tpm": 5}}
    several: list[dict[str, Any]] = [{}, {"model": "x"}, {"judge": {"model": "x"}}, {"judge": {}}]
    for wrong in several:
        with pytest.raises(ConfigError):
            limits_of(wrong)


def test_settings_of_a_service_come_from_a_file_and_flags(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text('max_runs = 2\nmax_cost = 5\n[data]\na = "o/a"\n[[endpoint]]\nname = "x"\nrpm = 60\n')
    config = load_service(file, {"max_runs": 3, "data": data_sets(["b=o/b"]), "store": None})
    assert (config.max_runs, config.max_cost, config.data) == (3, 5.0, {"a": "o/a", "b": "o/b"})
    assert config.store.is_absolute()
    assert {one.name for one in load_service().endpoint} >= {"openai", "anthropic"}
    for wrong in ("max_runs = 0", "rpm = 5", '[[endpoint]]\nname = "a b"', "max_runs = "):
        file.write_text(wrong)
        with pytest.raises(ConfigError, match=r"service\.toml"):
            load_service(file)
    for pair in (["x"], ["x="], ["=y"], ["x=1", "x=2"]):
        with pytest.raises(ConfigError, match="--data"):
            data_sets(pair)
    with pytest.raises(ConfigError, match="there is no such settings file"):
        load_service(tmp_path / "none.toml")

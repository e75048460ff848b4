"""The file of a run: what `to_toml` writes, `load_config` reads back, for every field."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.config import (
    EndpointKind,
    JudgeConfig,
    PanelJudge,
    RunConfig,
    build_config,
    load_config,
    to_toml,
)


def again(config: RunConfig, folder: Path) -> RunConfig:
    file = folder / "run.toml"
    file.write_text(to_toml(config), encoding="utf-8")
    return load_config({}, file=file, environment={})


CALL: dict[str, Any] = {
    "model": "m/ü:1",
    "endpoint": "gemini",
    "base_url": "https://api.example:8443/d?api-version=1",
    "api_key_env": "MINE",
    "concurrency": 3,
    "rpm": 12.5,
    "tpm": 1e16,
    "max_tokens": 0,
    "temperature": 0.25,
    "seed": -(2**63),
    "image_detail": "low",
    "prompt_caching": True,
    "params": {"a": True, "b": [1, 2.5, "x", {"y": [[]]}], "thinking": {"type": "enabled"}, "k é": '\x7f\\"'},
    "stream": True,
    "timeout": 1.5,
    "connect_timeout": 2.5,
    "idle_timeout": 3.5,
    "max_attempts": 2,
    "max_retry_time": 4.5,
    "batch": False,
    "batch_size": 7,
    "input_price": 0.0,
    "output_price": 1e-7,
}
RUN: dict[str, Any] = CALL | {
    "benchmark": "other",
    "name": 'a "name"\nwith\tall 😀',
    "store": "some folder/x.sqlite",
    "data": "C:\\data",
    "limit": 9,
    "task": ["counting", "x | y"],
    "where": {"stain": "H&E", "µm 😀": "1"},
    "shuffle_options": 4,
    "circular": True,
    "max_cost": 2.0,
    "judge": CALL | {"name": "strict", "model": "j"},
    "panel": [CALL | {"name": "lenient", "model": "j2"}, {"model": "j3", "params": {"deep": {"a": [None]}}}],
    "verdict": "majority",
    "judge_coverage": 0.98,
    "synchronous": "normal",
    "image_limits": "limits.toml",
    "preflight": False,
    "batch_poll": 5.5,
    "dask_scheduler": "tls://head:8786",
    "dask_workers": 8,
    "dask_jobqueue": "slurm",
    "dask_options": {"queue": "gpu", "cores": 2, "job_extra_directives": ["--nice"]},
    "executor": "local",
}


def test_the_test_knows_every_field() -> None:
    assert RUN.keys() == RunConfig.model_fields.keys()
    assert RUN["judge"].keys() == JudgeConfig.model_fields.keys()
    assert RUN["panel"][0].keys() == PanelJudge.model_fields.keys()


def test_every_field_comes_back(tmp_path: Path) -> None:
    config = build_config(RUN)
    for name, field in RunConfig.model_fields.items():
        assert getattr(config, name) != field.default, name
    assert again(config, tmp_path) == config


@pytest.mark.parametrize("name", sorted(RUN))
def test_each_field_comes_back_alone(name: str, tmp_path: Path) -> None:
    company = {"verdict": {"panel": RUN["panel"]}}
    company |= {key: {"executor": "local"} for key in ("dask_jobqueue", "dask_options")}
    needed = company.get(name, {})
    config = build_config({"model": "m", **needed, name: RUN[name]})
    assert again(config, tmp_path) == config


def test_only_what_differs_is_written() -> None:
    assert to_toml(RunConfig(model="m")) == 'model = "m"\n'
    text = to_toml(build_config({"model": "m", "rpm": 5, "judge": {"rpm": 6}, "params": {"a": 1}}))
    assert tomllib.loads(text) == {"model": "m", "rpm": 5.0, "judge": {"rpm": 6.0}, "params": {"a": 1}}


def test_a_panel_is_written_as_tables() -> None:
    panel = [{"model": "a", "params": {"top_k": 5}}, {"model": "b", "endpoint": "openai"}]
    text = to_toml(build_config({"model": "m", "panel": panel}))
    assert tomllib.loads(text) == {"model": "m", "panel": panel}
    assert text.count("[[panel]]") == 2


def test_a_null_parameter_comes_back(tmp_path: Path) -> None:
    """TOML has no null, and a null is how a field is taken out of a request."""
    params = {"max_tokens": None, "deep": {"x": [None]}, "quote": "'\"\\"}
    config = build_config({"model": "m", "params": params, "judge": {"rpm": 1, "params": params}})
    assert again(config, tmp_path) == config


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
SETTINGS = st.fixed_dictionaries(
    {"model": TEXT.filter(bool)},
    optional={
        "params": st.dictionaries(TEXT, VALUE, max_size=4),
        "where": st.dictionaries(TEXT, TEXT, max_size=3),
        "task": st.lists(TEXT, max_size=3),
        "data": TEXT,
        "rpm": st.floats(1e-300, 1e300),
        "endpoint": st.sampled_from(sorted(set(get_args(EndpointKind)) - {"azure"})),
        "judge": st.fixed_dictionaries({}, optional={"params": st.dictionaries(TEXT, VALUE, max_size=3)}),
    },
)


@given(settings=SETTINGS)
def test_whatever_is_set_comes_back(
    settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    config = build_config(settings)
    assert again(config, tmp_path_factory.getbasetemp()) == config

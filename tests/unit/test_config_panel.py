"""The judges of a panel: where they may be written, and what they cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mmbu_async.cli.main import app
from mmbu_async.config import JudgeConfig, PanelJudge, RunConfig, build_config, load_config, read_panel
from mmbu_async.errors import ConfigError, MissingKeyError
from mmbu_async.pipeline.changing import with_changes

TWO = """
verdict = "majority"
[[panel]]
model = "gpt-4o"
endpoint = "openai"
rpm = 60
[[panel]]
model = "qwen"
name = "local"
endpoint = "openai"
base_url = "http://localhost:8000/v1"
api_key_env = "MINE"
params = '{"top_k": null}'
"""


def written(folder: Path, text: str, name: str = "panel.toml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def load(flags: dict[str, Any], *, file: Path | None = None, **environment: str) -> RunConfig:
    return load_config({"model": "m"} | flags, file=file, environment=environment)


def refused(flags: dict[str, Any], **environment: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config({"model": "m"} | flags, environment=environment)
    text = str(caught.value)
    assert "\n" not in text and text.endswith((".", "?"))
    return text


def test_each_judge_of_a_settings_file_has_all_that_a_judge_can_have(tmp_path: Path) -> None:
    config = load({}, file=written(tmp_path, 'model = "m"\n' + TWO))
    first, second = config.panel
    assert config.verdict == "majority"
    assert (first.label, first.endpoint, first.rpm, first.max_tokens) == ("gpt-4o", "openai", 60.0, 512)
    assert (second.label, second.model, second.params) == ("local", "qwen", {"top_k": None})
    assert [judge.label for judge in config.judges] == ["claude-sonnet-5", "gpt-4o", "local"]
    with pytest.raises(MissingKeyError, match=r"`api_key_env` in the \[\[panel\]\] table of local"):
        second.api_key({})


def test_a_panel_replaces_another_whole(tmp_path: Path) -> None:
    file = written(tmp_path, 'model = "m"\n' + TWO)
    other = written(tmp_path, '[[panel]]\nmodel = "x"\n', "other.toml")
    assert [one.model for one in load({}, file=file, MMBU_PANEL=str(other)).panel] == ["x"]
    assert [one.model for one in load({"panel": [{"model": "y"}]}, file=file).panel] == ["y"]
    config = load({}, MMBU_PANEL=str(file.with_name("panel.toml")).replace("panel.toml", "other.toml"))
    assert config.verdict == "judge"
    assert [one.model for one in load({}, MMBU_PANEL='[{"model": "z"}]').panel] == ["z"]
    both = written(tmp_path, TWO, "both.toml")
    assert load({}, MMBU_PANEL=str(both)).verdict == "majority"
    assert load({}, MMBU_PANEL=str(both), MMBU_VERDICT="local").verdict == "local"


def test_from_python_a_judge_is_a_judge() -> None:
    config = RunConfig(model="m", panel=(JudgeConfig(model="j", rpm=5), PanelJudge(model="k")))
    assert config.panel == (PanelJudge(model="j", rpm=5), PanelJudge(model="k"))


def test_the_flag_names_a_file_or_none(tmp_path: Path) -> None:
    def typed(*flags: str) -> RunConfig:
        out = tmp_path / "out.toml"
        run = CliRunner().invoke(app, ["run", "--model", "m", *flags, "--write-config", str(out)])
        if run.exception is not None and not isinstance(run.exception, SystemExit):
            raise run.exception
        return load_config({}, file=out, environment={})

    both = str(written(tmp_path, TWO))
    assert [one.label for one in typed("--panel", both).panel] == ["gpt-4o", "local"]
    assert typed("--panel", both).verdict == "majority"
    assert typed("--panel", both, "--verdict", "local", "--judge-rpm", "5").verdict == "local"
    settings = str(written(tmp_path, 'model = "m"\n' + TWO, "run.toml"))
    assert len(typed("--config", settings).panel) == 2
    alone = typed("--config", settings, "--panel", "none")
    assert (alone.panel, alone.verdict) == ((), "judge")
    with pytest.raises(ConfigError, match="there is no such settings file"):
        typed("--panel", str(tmp_path / "nowhere.toml"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('verdict = "zz"\n[[panel]]\nmodel = "x"', "setting 'verdict' = 'zz': must be"),
        (
            '[[panel]]\nmodel = "x"\n[[panel]]\nmodel = "claude-sonnet-5"',
            "setting 'panel': two judges are called 'claude-sonnet-5', the run's own judge and [[panel]] "
            "table 2; give one a `name` of its own.",
        ),
    ],
)
def test_what_is_wrong_beside_the_runs_judge_is_said_with_the_files_name(
    tmp_path: Path, text: str, words: str
) -> None:
    file = str(written(tmp_path, text))
    for flags, environment in (({"panel": file}, {}), ({}, {"MMBU_PANEL": file})):
        assert refused(flags, **environment).startswith(f"{file}: {words}")
    with pytest.raises(ConfigError) as caught:
        with_changes(RunConfig(model="m"), {"panel": file})
    assert str(caught.value).startswith(f"{file}: {words}")
    typed = refused({"panel": str(written(tmp_path, TWO)), "verdict": "zz"})
    assert typed.startswith("the command line: setting 'verdict'")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no [[panel]] table"),
        ("panel = []", "has no [[panel]] table"),
        ('model = "m"\n' + TWO, "holds 'model', and the file of a panel has [[panel]] tables and `verdict`"),
        ('[[panel]]\nmodle = "x"', "there is no setting 'panel.1.modle'; did you mean 'model'?"),
        ('[[panel]]\nmodel = "x"\n[[panel]]\nrpm = 5', "the setting 'panel.2.model' is missing."),
        ('[[panel]]\nmodel = "x"\nrpm = -1', "setting 'panel.1.rpm' = -1: "),
        (
            '[[panel]]\nmodel = "x"\n[[panel]]\nmodel = "x"',
            "two judges are called 'x', [[panel]] table 1 and [[",
        ),
        ('[panel]\nmodel = "x"', "setting 'panel': is a single table; write [[panel]] above each judge"),
        ('panel = "x"', "setting 'panel': is no list of judges; write a [[panel]] table for each."),
    ],
)
def test_what_is_wrong_is_said_with_the_files_name(tmp_path: Path, text: str, words: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_panel(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert words in str(caught.value)


def test_whose_verdict_counts_must_be_one_of_the_judges() -> None:
    panel = [{"model": "a"}, {"model": "b", "name": "strict"}]
    for name in ("judge", "majority", "a", "strict", "claude-sonnet-5"):
        assert load({"panel": panel, "verdict": name}).verdict == name
    assert load({"verdict": "claude-sonnet-5"}).verdict == "claude-sonnet-5"
    words = "must be 'judge', 'majority' or a judge's name (claude-sonnet-5, a, strict)"
    assert words in refused({"panel": panel, "verdict": "b"})
    assert "one has no majority" in refused({"verdict": "majority"})
    assert refused({}, MMBU_VERDICT="majority").startswith("the environment variable MMBU_VERDICT: ")


def test_judges_have_names_of_their_own() -> None:
    assert "two judges are called 'claude-sonnet-5'" in refused({"panel": [{"model": "claude-sonnet-5"}]})
    assert load({"panel": [{"model": "claude-sonnet-5", "name": "other"}]}).panel[0].label == "other"
    for word in ("judge", "majority"):
        text = refused({"panel": [{"model": "a", "name": word}]})
        assert f"a judge cannot be called '{word}'" in text
    judge = {"name": "majority"}
    assert "cannot be called 'majority'" in refused({"judge": judge, "panel": [{"model": "a"}]})


def test_what_is_wrong_with_the_judge_is_said_of_the_judge() -> None:
    with pytest.raises(ConfigError, match=r"^x: setting 'judge\.rpm'"):
        build_config(
            {"model": "m", "judge": {"rpm": -1}, "panel": [{"model": "a"}], "verdict": "majority"}, "x"
        )


def test_a_judge_whose_name_means_something_else_is_refused_before_the_run() -> None:
    """Also without a panel: the run's own settings, read again for a resume, would be refused."""
    with pytest.raises(ConfigError, match="cannot be called 'judge'"):
        build_config({"model": "m", "judge": {"model": "judge"}})

"""Settings: three sources, one answer, and errors that name the setting and where it came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mmbu_async.config import CallSettings, JudgeConfig, RunConfig, build_config, load_config, parse_json
from mmbu_async.errors import ConfigError, MissingKeyError

NOTHING: dict[str, str] = {}


def written(folder: Path, text: str) -> Path:
    file = folder / "run.toml"
    file.write_text(text, encoding="utf-8")
    return file


def load(flags: dict[str, Any] | None = None, *, file: Path | None = None, **environment: str) -> RunConfig:
    return load_config(flags or {}, file=file, environment=environment)


def refused(flags: dict[str, Any] | None = None, *, file: Path | None = None, **environment: str) -> str:
    """The one sentence."""
    with pytest.raises(ConfigError) as caught:
        load(flags, file=file, **environment)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith((".", "?"))
    return text


# ---------------------------------------------------------------- precedence


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, 'model = "file"\nrpm = 1\ntpm = 1\nseed = 1\n')
    config = load({"model": "flag"}, file=file, MMBU_MODEL="environment", MMBU_RPM="2")
    assert (config.model, config.rpm, config.tpm, config.seed) == ("flag", 2.0, 1.0, 1)


def test_the_same_for_the_judge(tmp_path: Path) -> None:
    file = written(tmp_path, 'model = "m"\n[judge]\nmodel = "file"\nrpm = 1\ntpm = 1\n')
    config = load({"judge": {"model": "flag"}}, file=file, MMBU_JUDGE_MODEL="env", MMBU_JUDGE_RPM="2")
    assert (config.judge.model, config.judge.rpm, config.judge.tpm) == ("flag", 2.0, 1.0)
    assert config.judge.endpoint == "anthropic"


def test_tables_are_joined_entry_by_entry_and_an_entry_is_taken_whole(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        'model = "m"\n[params]\na = 1\nthinking = { type = "enabled", budget = 1000 }\n'
        '[where]\nstain = "H&E"\n[judge.params]\nx = 1\n',
    )
    flags = {
        "params": {"thinking": {"type": "disabled"}, "b": 2},
        "where": {"size": "1"},
        "judge": {"params": {"y": 2}},
    }
    config = load(flags, file=file, MMBU_PARAMS='{"c": 3, "a": 0}', MMBU_JUDGE_PARAMS='{"x": 9}')
    # A budget without its kind would be another request than either source asks for.
    assert config.params == {"a": 0, "c": 3, "thinking": {"type": "disabled"}, "b": 2}
    assert config.where == {"stain": "H&E", "size": "1"}
    assert config.judge.params == {"x": 9, "y": 2}


def test_joining_leaves_the_flags_alone(tmp_path: Path) -> None:
    flags = {"model": "m", "judge": {"params": {"a": 1}}, "params": {"b": 1}}
    load(flags, file=written(tmp_path, "[params]\nc = 1\n[judge.params]\nd = 1\n"))
    assert flags == {"model": "m", "judge": {"params": {"a": 1}}, "params": {"b": 1}}


def test_a_table_of_the_file_is_not_forgotten_where_the_environment_names_a_word(tmp_path: Path) -> None:
    file = written(tmp_path, 'model = "m"\nparams = "{\\"a\\": null, \\"b\\": 1}"\n')
    assert load({"params": {"b": 2}}, file=file).params == {"a": None, "b": 2}


def test_environment_values_are_read_by_their_type() -> None:
    config = load(
        MMBU_MODEL="m",
        MMBU_MAX_COST="2.5",
        MMBU_STREAM="true",
        MMBU_LIMIT="7",
        MMBU_TASK="counting",
        MMBU_WHERE='{"stain": "H&E"}',
        MMBU_STORE="runs/a.sqlite",
        MMBU_JUDGE_MAX_TOKENS="9",
        MMBU_JUDGE="ignored",
        OTHER="ignored",
    )
    assert (config.max_cost, config.stream, config.limit, config.task) == (2.5, True, 7, ("counting",))
    assert (config.where, config.store, config.judge.max_tokens) == (
        {"stain": "H&E"},
        Path("runs/a.sqlite"),
        9,
    )
    assert load(MMBU_MODEL="m", MMBU_TASK='["a", "b"]').task == ("a", "b")


def test_how_many_rows_must_be_judged_is_a_setting_of_the_run_not_of_the_judge(tmp_path: Path) -> None:
    file = written(tmp_path, 'model = "m"\njudge_coverage = 0.9\n[judge]\nrpm = 1\n')
    assert load(file=file).judge_coverage == 0.9
    assert load(file=file, MMBU_JUDGE_COVERAGE="0.95").judge_coverage == 0.95
    assert load({"judge_coverage": 0.98}, file=file, MMBU_JUDGE_COVERAGE="0.95").judge_coverage == 0.98
    assert refused({"model": "m"}, MMBU_JUDGE_COVERAGE="98").startswith(
        "the environment variable MMBU_JUDGE_COVERAGE: setting 'judge_coverage' = '98': "
    )


def test_an_empty_variable_is_one_that_is_not_set(tmp_path: Path) -> None:
    file = written(tmp_path, 'model = "m"\nrpm = 5\n')
    config = load(file=file, MMBU_MODEL="", MMBU_RPM="", MMBU_JUDGE_MODEL="")
    assert (config.model, config.rpm) == ("m", 5.0)


def test_the_real_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMBU_MODEL", "from outside")
    assert load_config({}).model == "from outside"


def test_numbers_and_truth_values_in_where_are_texts(tmp_path: Path) -> None:
    file = written(tmp_path, 'model = "m"\n[where]\nsize = 0.25\ncount = 3\nchecked = true\n')
    assert load(file=file).where == {"size": "0.25", "count": "3", "checked": "True"}


def test_a_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert load(file=written(tmp_path, '\ufeffmodel = "m"\n')).model == "m"


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ("true", True), ("null", None), ("low", "low"), ('["a"]', ["a"]), ("", "")]
)
def test_parameters_are_json_or_words(text: str, value: Any) -> None:
    assert parse_json(text) == value


# ---------------------------------------------------------------- errors


def test_every_error_names_where_the_setting_came_from(tmp_path: Path) -> None:
    file = written(tmp_path, 'model = "m"\nrpm = -1\n')
    assert refused(file=file).startswith(f"{file}: setting 'rpm' = -1: ")
    assert refused({"model": "m"}, MMBU_RPM="abc").startswith(
        "the environment variable MMBU_RPM: setting 'rpm' = 'abc': "
    )
    assert refused({"model": "m", "rpm": "abc"}, MMBU_RPM="5").startswith("the command line: setting 'rpm'")
    assert refused({"model": "m"}, MMBU_JUDGE_RPM="0").startswith(
        "the environment variable MMBU_JUDGE_RPM: setting 'judge.rpm' = '0': "
    )
    judge = written(tmp_path, 'model = "m"\n[judge]\nrpm = "x"\n')
    assert refused({"judge": {"tpm": 1}}, file=judge).startswith(f"{judge}: setting 'judge.rpm' = 'x': ")
    # The last word is the one that is wrong, not the first.
    assert refused({"rpm": 0}, file=file).startswith("the command line: setting 'rpm' = 0: ")


def test_an_unknown_setting_suggests_the_near_one(tmp_path: Path) -> None:
    file = written(tmp_path, 'model = "m"\nmax_tokns = 5\n')
    assert refused(file=file) == f"{file}: there is no setting 'max_tokns'; did you mean 'max_tokens'?"
    judge = written(tmp_path, 'model = "m"\n[judge]\nmodle = "x"\n')
    assert refused(file=judge) == f"{judge}: there is no setting 'judge.modle'; did you mean 'model'?"
    assert "known are: model, endpoint, " in refused({"model": "m", "zzzzzz": 1})


def test_a_missing_model() -> None:
    assert refused() == "the settings: the setting 'model' is missing; give --model or MMBU_MODEL."


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("model", ""),
        ("endpoint", "cohere"),
        ("concurrency", 0),
        ("concurrency", 10_001),
        ("rpm", float("inf")),
        ("tpm", float("nan")),
        ("max_tokens", -1),
        ("temperature", 2.1),
        ("seed", 2**64),
        ("timeout", 0),
        ("max_attempts", 0),
        ("max_cost", 0),
        ("limit", 0),
        ("input_price", -1),
        ("synchronous", "off"),
        ("task", 3),
        ("where", "x"),
        ("where", {"a": None}),
        ("params", "x"),
        ("params", {"a": float("nan")}),
        ("params", {"a": [1, {"b": object()}]}),
        ("params", {"a": 2**70}),
        ("judge", "claude"),
        ("stream", "perhaps"),
    ],
)
def test_values_that_cannot_be(setting: str, value: Any) -> None:
    text = refused({"model": "m"} | {setting: value})
    assert text.startswith(f"the command line: setting '{setting}")
    assert len(text) < 400


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("api.example/v1", "must be an http:// or https:// address with a host"),
        ("ftp://api.example", "must be an http:// or https:// address with a host"),
        ("https://", "must be an http:// or https:// address with a host"),
        ("https://api.example:99999/v1", "has a host or port that cannot exist"),
        ("https://api.example:x/v1", "has a host or port that cannot exist"),
        ("https://a..b/v1", "has a host or port that cannot exist"),
        ("https://" + "a" * 70 + ".example/v1", "has a host or port that cannot exist"),
        ("https://[::1/v1", "Invalid IPv6 URL"),
        ("https://api.example/v1?api_key=canary", "must not hold a key in its query"),
        ("https://api.example/v1?x=1&access_token=canary", "must not hold a key in its query"),
        ("https://api.example/v1/chat/completions", "must end before /chat/completions"),
        ("https://api.example/v1#part", "must end before"),
    ],
)
def test_addresses_that_cannot_be(address: str, words: str) -> None:
    assert words in refused({"model": "m", "base_url": address})


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    for address in ("https://me:canary@api.example/v1", "http://canary@api.example/v1"):
        text = refused({"model": "m", "base_url": address})
        assert "must not hold a user name or password" in text
        assert "canary" not in text


def test_a_key_in_a_query_is_not_repeated() -> None:
    assert "canary" not in refused({"model": "m", "base_url": "https://api.example/v1?key=canary"})


def test_anthropics_path_is_not_doubled() -> None:
    text = refused({"model": "m", "judge": {"base_url": "https://api.anthropic.com/v1/"}})
    assert "setting 'judge.base_url'" in text
    assert "must end before /v1" in text
    assert load({"model": "m", "base_url": "https://api.example/v1"}).url == "https://api.example/v1"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (" https://api.example/v1/ ", "https://api.example/v1"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("https://x.example/d/?api-version=2024-10-21", "https://x.example/d?api-version=2024-10-21"),
    ],
)
def test_addresses_are_kept_without_what_is_too_much(given: str, kept: str) -> None:
    assert load({"model": "m", "base_url": given}).base_url == kept


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    assert refused(file=missing) == f"{missing}: there is no such settings file."
    assert refused(file=tmp_path) == f"{tmp_path}: cannot be read (Is a directory)."
    broken = written(tmp_path, "model = \n")
    assert refused(file=broken).startswith(f"{broken}: is not valid TOML: ")
    (tmp_path / "latin.toml").write_bytes(b'model = "\xff"')
    assert "cannot be read (no UTF-8 text, at byte 9)" in refused(file=tmp_path / "latin.toml")


def test_settings_of_any_other_origin() -> None:
    with pytest.raises(ConfigError, match=r"^run 'night' in a\.sqlite: setting 'rpm' = 'x': "):
        build_config({"model": "m", "rpm": "x"}, "run 'night' in a.sqlite")


def test_settings_cannot_be_changed_afterwards() -> None:
    with pytest.raises(ValueError, match="frozen"):
        RunConfig(model="m").model = "x"  # type: ignore[misc]


# ---------------------------------------------------------------- keys


def test_a_key_comes_from_the_makers_variable_or_one_that_is_named() -> None:
    assert CallSettings(model="m").api_key({"OPENAI_API_KEY": " sk-1\n"}) == "sk-1"
    assert JudgeConfig().api_key({"ANTHROPIC_API_KEY": "k"}) == "k"
    named = CallSettings(model="m", api_key_env="MINE")
    assert named.api_key({"MINE": "k", "OPENAI_API_KEY": "other"}) == "k"


def test_a_missing_key_is_named_with_model_host_and_variable() -> None:
    with pytest.raises(MissingKeyError) as caught:
        JudgeConfig().api_key(NOTHING)
    for words in ("claude-sonnet-5", "api.anthropic.com", "ANTHROPIC_API_KEY", "--judge-api-key-env"):
        assert words in str(caught.value)
    with pytest.raises(MissingKeyError, match="MINE"):
        CallSettings(model="m", base_url="http://localhost:1", api_key_env="MINE").api_key({"MINE": " "})


def test_a_server_of_ones_own_needs_none() -> None:
    assert CallSettings(model="m", base_url="http://localhost:8000/v1").api_key(NOTHING) == ""


@pytest.mark.parametrize("key", ["sk-canary\nsk-2", "sk-canary\x00", "sk-“canary”", "sk-canary\u2026"])
def test_a_key_that_cannot_be_one_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY") as caught:
        CallSettings(model="m").api_key({"OPENAI_API_KEY": key})
    assert "canary" not in str(caught.value)


CANARIES = [
    "sk-proj-canary0123456789",
    "sk-ant-api03-canary0123456789",
    "hf_canary0123456789abcdefghij",
    "gsk_canary0123456789abcdefghij",
    "canary=secret",
    "",
]


@pytest.mark.parametrize("key", CANARIES)
def test_a_key_given_for_its_variable_is_refused_and_not_repeated(key: str) -> None:
    for settings in (
        {"api_key_env": key},
        {"judge": {"api_key_env": key}},
        {"panel": [{"model": "b", "api_key_env": key}]},
    ):
        text = refused({"model": "m"} | settings)
        assert "must be the name of an environment variable that holds the key, not the key" in text
        assert "canary" not in text


@pytest.mark.parametrize("name", ["MINE", "_x", "MY_TEAM_openai_key_2026", "OPENROUTER_API_KEY_2", "k" * 40])
def test_names_of_variables_are_taken(name: str) -> None:
    assert CallSettings(model="m", api_key_env=name).key_variable == name


@pytest.mark.parametrize(
    "params",
    [
        {"api_key": "canary"},
        {"API-Key": "canary"},
        {"extra_headers": {"Authorization": "Bearer canary"}},
        {"extra_body": [{"x-api-key": "canary"}]},
        {"nested": {"deep": {"password": "canary"}}},
        {"access_token": "canary"},
    ],
)
def test_a_key_among_the_parameters_is_refused_and_not_repeated(params: dict[str, Any]) -> None:
    text = refused({"model": "m", "params": params})
    assert "which would be kept with the run; use the environment" in text
    assert "canary" not in text


def test_parameters_with_harmless_names_are_taken() -> None:
    params: dict[str, Any] = {
        "max_completion_tokens": 5,
        "api_key": None,
        "logit_bias": {"50256": -100},
        "stop_token_ids": [1],
        "prompt_cache_key": "x",
    }
    assert CallSettings(model="m", params=params).params == params

"""The card of a run: whoever has it can run the same again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from mmbu_async import api, tasks
from mmbu_async.config import JudgeConfig, PanelJudge, RunConfig, load_config
from mmbu_async.judging import mmbu
from mmbu_async.model import ImageSlot, Prompt
from mmbu_async.pipeline.opening import rules_of, stored_config
from mmbu_async.pipeline.recipe import recipe
from mmbu_async.report import build_report, to_card
from mmbu_async.report.recipe import UsedPrompt
from mmbu_async.store.codec import clean
from tests.edges import RIGHT
from tests.hostile import EVERYTHING, LONG, MARK, broken_tables, live_markup, steering
from tests.stored_run import IDENTITY, OFFICIAL_JUDGE, MakeRun

RUN = "test-run"
SAFE = clean(EVERYTHING).replace("\ufffd", "")

PLAIN = RunConfig(model="m")
FULL = RunConfig(
    model="org/model",
    endpoint="anthropic",
    base_url="https://gateway.example.org/a",
    api_key_env="GATEWAY_KEY",
    concurrency=7,
    rpm=30.5,
    max_tokens=0,
    temperature=0.5,
    seed=-3,
    params={"reasoning_effort": "low", "stop": None, "nested": {"list": [1, 2.5, True]}},
    stream=True,
    input_price=0.0,
    benchmark="mmbu-closed",
    name="some name",
    store=Path("/home/somebody/else.sqlite"),
    data="/home/somebody/mmbu",
    limit=5,
    task=("counting", "object detection"),
    where={"metadata_modality": "x"},
    shuffle_options=3,
    circular=True,
    max_cost=2.0,
    judge=JudgeConfig(name="mine", model="a judge", endpoint="openai", max_tokens=9, params={"a": None}),
    panel=(
        PanelJudge(name="second", model="b", api_key_env="SECOND_KEY"),
        PanelJudge(name="third", model="c", base_url="https://third.example.org", params={"x": 1}),
    ),
    verdict="majority",
    judge_coverage=0.98,
    synchronous="normal",
    image_limits=Path("/home/somebody/limits.toml"),
    preflight=False,
)
HOSTILE = RunConfig(
    model=SAFE,
    params={SAFE: [SAFE], "code": "```\n\"\"\"'''"},
    task=(SAFE, "\\"),
    where={SAFE: SAFE},
    data=f"/data/{MARK}\u202e",
    judge=JudgeConfig(model=SAFE, name=SAFE),
)


def card(make_run: MakeRun, config: RunConfig = PLAIN, identity: Mapping[str, Any] = IDENTITY) -> str:
    route = "choice" if config.benchmark == "mmbu-closed" else "single_answer"
    store, _ = make_run(
        [{**RIGHT, "route": route}],
        config=stored_config(config),
        identity=identity,
        benchmark=config.benchmark,
        source=f"{config.data or config.benchmark}/metadata.jsonl",
    )
    return api.card(RUN, store=store.path)


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of that language, as a reader of Markdown finds them."""
    tokens = MarkdownIt("commonmark").parse(text)
    return [token.content for token in tokens if token.type == "fence" and token.info == language]


@pytest.mark.parametrize("config", [PLAIN, FULL, HOSTILE], ids=["plain", "full", "hostile"])
def test_the_settings_in_it_are_those_of_the_run(
    make_run: MakeRun, tmp_path: Path, config: RunConfig
) -> None:
    (settings,) = blocks(card(make_run, config), "toml")
    file = tmp_path / "settings.toml"
    file.write_text(settings, encoding="utf-8")
    places = {
        "name": None,
        "store": PLAIN.store,
        "data": config.data and Path(config.data).name,
        "image_limits": config.image_limits and Path(config.image_limits.name),
    }
    assert load_config({}, file=file, environment={}) == config.model_copy(update=places)


def test_it_says_nothing_of_where_files_lay(make_run: MakeRun) -> None:
    text = card(make_run, FULL)
    assert "somebody" not in text
    assert "Given by the last name of their path only: data, image_limits;" in text
    assert "read from mmbu/metadata.jsonl" in text
    assert "taken from the environment: GATEWAY_KEY, OPENAI_API_KEY, SECOND_KEY, ANTHROPIC_API_KEY." in text


def test_every_prompt_in_it_has_the_hash_beside_it(make_run: MakeRun) -> None:
    prompts = tasks.load("mmbu-public").prompt_hashes()
    text = card(make_run, identity=IDENTITY | {"prompts": prompts})
    found = re.findall(r"^.*?SHA-256 (\w{64}):\n\n```text\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE)
    assert sorted(sha for sha, _ in found) == sorted([*prompts.values(), mmbu.PROMPT_SHA256])
    for sha, prompt in found:
        assert hashlib.sha256(prompt.encode()).hexdigest() == sha


def test_a_prompt_that_changed_since_is_not_shown_as_the_old_one(make_run: MakeRun) -> None:
    judge = OFFICIAL_JUDGE | {"prompt": "0" * 64}
    store, _ = make_run([RIGHT], judge=judge, config=stored_config(PLAIN))
    text = api.card(RUN, store=store.path)
    # The two of the identity in stored_run, and the judge's.
    assert text.count("The installed version does not know the text of this hash.") == 3
    assert "two-gate" not in text.lower()


def test_it_holds_what_a_reader_needs(make_run: MakeRun) -> None:
    text = card(make_run)
    benchmark = tasks.load("mmbu-public")
    for needed in (
        "# test-vlm-1 on MMBU, public split, open format",
        "**COMPLETE: 1 of 1 row scored.**",
        f"Licence of the data: {benchmark.licence}",
        f"Cite: {benchmark.citation}",
        "pip install mmbu-async==0.1.0\nmmbu run --config settings.toml",
        "| all selected | 1 \\* | 1 | 0 | 1.000 |",
        "1,000 resamples",
        "Accuracy: right rows / all selected rows.",
        "Limit: max_edge: 8000",
        "Rows with an image scaled down: 0",
        "What is shown?\n\nOutput format:",
        "Session 1 (run): 1970-01-01 00:33 UTC, 1 min 40 s, done, mmbu-async 0.1.0",
        "Cost, model: \\$0.0100",
    ):
        assert needed in text


def test_hostile_prompts_and_licences_stay_text(make_run: MakeRun) -> None:
    """A benchmark that somebody describes in a file may say anything."""
    store, run = make_run([RIGHT], config=stored_config(PLAIN))
    real = recipe(store, run, PLAIN, rules_of(PLAIN).benchmark)
    foreign = replace(
        real,
        title=EVERYTHING,
        home=EVERYTHING,
        licence=EVERYTHING,
        citation=EVERYTHING,
        prompts=(UsedPrompt(name=EVERYTHING, sha256=EVERYTHING, text=EVERYTHING),),
        examples={EVERYTHING: Prompt(parts=(ImageSlot(index=0), LONG + EVERYTHING), system=EVERYTHING)},
        images={EVERYTHING: EVERYTHING},
        versions={EVERYTHING: EVERYTHING},
        keys=(EVERYTHING,),
        shortened=(EVERYTHING,),
    )
    text = to_card(build_report(store, run), foreign)
    assert steering(text) == broken_tables(text) == live_markup(text) == []
    assert len(text) < 60_000


def test_a_version_from_a_store_runs_no_command(make_run: MakeRun) -> None:
    store, run = make_run([RIGHT], config=stored_config(PLAIN))
    data = build_report(store, run)
    hostile = replace(data, ran=replace(data.ran, packages=("1; rm -rf ~ `x` $(y)\n",)))
    (commands,) = blocks(to_card(hostile, recipe(store, run, PLAIN, rules_of(PLAIN).benchmark)), "sh")
    assert not set(";`$()~") & set(commands.splitlines()[0])
    assert len(commands.splitlines()) == 2

"""The texts behind the hashes: what a card must show so that a run can be repeated."""

import pytest

from mmbu_async import tasks
from mmbu_async.tasks.custom import from_toml
from mmbu_async.tasks.texts import TellsPrompts, hashes

CUSTOM = """
name = "mine"
[columns]
question = "question"
answer = "answer"
[prompt]
template = "{question}"
system = "Be brief."
[scorer]
kind = "exact"
"""


@pytest.mark.parametrize("name", tasks.NAMES)
def test_texts_are_those_of_the_hashes(name: str) -> None:
    benchmark = tasks.load(name)
    assert isinstance(benchmark, TellsPrompts)
    assert hashes(benchmark.prompt_texts()) == dict(benchmark.prompt_hashes())


def test_a_benchmark_of_ones_own_shows_its_whole_description() -> None:
    benchmark = from_toml(CUSTOM, "mine.toml")
    assert hashes(benchmark.prompt_texts()) == dict(benchmark.prompt_hashes())
    assert benchmark.prompt_texts()["system"] == "Be brief."
    assert '"kind":"exact"' in benchmark.prompt_texts()["description"]

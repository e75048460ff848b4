"""The doctor: one call to model and judge each, and plain words."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mmbu_async import api
from tests.whole_run import config, simulated

pytestmark = pytest.mark.usefixtures("keys")


async def test_all_is_well(data: Path, store: Path) -> None:
    async with simulated() as simulator:
        found = await api.doctor(config(simulator, store, data))
        assert all(finding.ok for finding in found)
        assert {finding.about for finding in found} == {"image", "model", "answer", "judge"}
        assert len(simulator.log) == 2
    assert list(store.parent.iterdir()) == [data], "nothing is stored"


@pytest.mark.parametrize(
    ("fault", "about", "words"),
    [
        ("unauthorized", "model", "refuses the key in OPENAI_API_KEY"),
        ("forbidden@judge", "judge", "denies access with the key in OPENAI_API_KEY"),
        ("model_not_found@judge", "judge", "check --judge-model"),
        ("quota", "model", "used up"),
        ("rate_limit", "model", "set --rpm"),
        ("rate_limit@judge", "judge", "set --judge-rpm"),
        ("server_error", "model", "had an error"),
        ("image_too_large@model", "model", "--param"),
        ("html_page", "model", "not in the openai format"),
        ("reset", "model", "cannot be reached"),
        ("untagged@model", "answer", "no <answer> tags"),
        ("empty_text@model", "answer", "the reply is empty"),
        ("thinking_spent@model", "answer", "raise --max-tokens"),
        ("no_verdict@judge", "judge", "no usable verdict"),
        ("truncated@judge", "judge", "raise --judge-max-tokens"),
    ],
)
async def test_what_is_wrong_is_said_after_one_call_each(
    data: Path, store: Path, fault: str, about: str, words: str
) -> None:
    # A wait as endpoints ask for it: the doctor does not sit it out.
    async with simulated(f"{fault}=1.0", retry_after_s=3600.0) as simulator:
        found = await api.doctor(config(simulator, store, data))
        assert [words in finding.text for finding in found if not finding.ok and finding.about == about] == [
            True
        ]
        await simulator.settled()
        assert Counter(record.role for record in simulator.log) == {"model": 1, "judge": 1}

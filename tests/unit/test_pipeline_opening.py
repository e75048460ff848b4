"""Names that a new run may have."""

from __future__ import annotations

import pytest

from mmbu_async.errors import ConfigError
from mmbu_async.pipeline.opening import check_name


@pytest.mark.parametrize(
    "name", ["", " ", "\t", "\u00a0", "a\nb", "a\x1b[0m", "a\u2028b", "\ud800", ".", ".."]
)
def test_a_name_that_nobody_could_see_or_type_is_refused(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_name(name)
    text = str(caught.value)
    assert text.isprintable()
    assert text.startswith("--name '") and text.endswith("; give the run another name.")


@pytest.mark.parametrize("name", ["a run", "Größe 50 %", "视觉", ".hidden", "a/b", "mmbu-public-gpt-4o"])
def test_other_names_are_a_matter_of_taste(name: str) -> None:
    check_name(name)

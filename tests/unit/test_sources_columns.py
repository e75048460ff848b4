from __future__ import annotations

import pytest

from mmbu_async.errors import DataError
from mmbu_async.sources import columns

WANTED = {"question": ("question", "query"), "image": ("img_name", "Figure_path")}


def test_the_first_candidate_that_is_there_wins() -> None:
    found = ["query", "question", "Figure_path"]
    assert columns(found, WANTED, "t.csv") == {"question": "question", "image": "Figure_path"}


def test_case_and_spacing_do_not_matter_where_nothing_fits_exactly() -> None:
    assert columns([" Question", "Img Name"], WANTED, "t") == {"question": " Question", "image": "Img Name"}
    assert columns(["QUESTION", "question", "img_name"], WANTED, "t")["question"] == "question"
    assert columns(["Question", "QUESTION", "img_name"], WANTED, "t")["question"] == "Question"


def test_what_was_looked_for_and_what_was_found_is_told() -> None:
    with pytest.raises(DataError) as caught:
        columns(["answer", "text"], WANTED, "test.csv")
    assert str(caught.value) == (
        "test.csv: has no column for question (looked for question, query); none for image (looked for "
        "img_name, Figure_path); its columns are answer, text: rename them, or give another copy of the data."
    )
    with pytest.raises(DataError, match="its columns are none"):
        columns([], WANTED, "test.csv")


def test_optional_columns_may_be_missing() -> None:
    optional = {"language": ("q_lang",), "modality": ("modality",)}
    found = columns(["question", "img_name", "Modality"], WANTED, "t", optional=optional)
    assert found == {"question": "question", "image": "img_name", "modality": "Modality"}

"""The file of a benchmark of one's own: every mistake is one sentence that points to its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mmbu_async.errors import ConfigError, RowError
from mmbu_async.model import Completion, Finish, RawRow, Sample, ScoreItem
from mmbu_async.tasks.custom import CustomBenchmark, from_toml
from mmbu_async.tasks.forms import Form

TOML = """\
# A comment
name = "cells"

[source]
tables = ["rows.csv"]
image_columns = ["image"]

[columns]
id = "uid"
question = "question"
answer = "label"
options = "choices"
family = "site"

[prompt]
template = '''{question}

{options}

Answer with the letter inside <answer> tags.'''

[scorer]
kind = "choice"

[strata]
columns = ["site", "stain type"]
"""
ROW: dict[str, Any] = {
    "uid": "u1",
    "image": "ct.png",
    "question": "Which?",
    "choices": '["CT", "MRI", "PET"]',
    "label": "B",
    "site": "north",
    "stain type": "",
}
MISTAKES: dict[str, tuple[str, str, str]] = {
    "an unknown scorer": (
        'kind = "choice"',
        'kind = "choise"',
        "line 23: scorer.kind = 'choise': must be 'choice'",
    ),
    "a key that is missing": (
        'answer = "label"\n',
        "",
        "line 8: columns.answer: is missing; add it under [columns]",
    ),
    "a table that is missing": ('[scorer]\nkind = "choice"\n', "", "line 1: scorer: is missing; add it"),
    "an empty name of a column": (
        'question = "question"',
        'question = ""',
        "line 10: columns.question: is empty",
    ),
    "an empty template": (
        TOML[TOML.index("'''{question}") : TOML.index("\n\n[scorer]")],
        "''",
        "line 16: prompt.template: is empty",
    ),
    "the answer in the template": (
        "{question}",
        "{label}",
        "line 16: prompt.template: {label} would show the model",
    ),
    "the answer under its own name": ("{question}", "{answer}", "{answer} would show the model the answer"),
    "an unknown place": (
        "{question}",
        "{organ}",
        "line 16: prompt.template: {organ} is neither one of question,",
    ),
    "a choice without options": ('options = "choices"\n', "", "line 22: scorer.kind: a choice needs options"),
    "text that is no TOML": ('name = "cells"', 'name = "cells', "cells.toml: is not valid TOML: "),
    "the same key twice": ('id = "uid"', 'id = "uid"\nid = "uid"', "is not valid TOML: "),
    "an unknown table": (
        "[strata]",
        "[stratta]",
        "line 25: stratta: there is no such setting; known are name, title",
    ),
    "an unknown key": (
        'id = "uid"',
        'uid = "uid"',
        "line 9: columns.uid: there is no such setting; known under [col",
    ),
    "a text in place of a list": (
        'image_columns = ["image"]',
        'image_columns = "image"',
        "line 6: source.image_columns: must be a list, as in image_columns = [\"…\"], not 'image'",
    ),
    "a list that is empty": ('tables = ["rows.csv"]', "tables = []", "line 5: source.tables: is empty"),
    "a list that holds nothing": ('["rows.csv"]', '[""]', "line 5: source.tables.0: is empty"),
    "a table beside the data": (
        '["rows.csv"]',
        '["rows.csv", "../other/*.csv"]',
        "line 5: source.tables: '../other/*.csv' leads out of the data's folder; name what is in it",
    ),
    "a table anywhere": ('["rows.csv"]', '["/etc/passwd"]', "'/etc/passwd' leads out of the data's folder"),
    "an archive beside the data": (
        '["rows.csv"]',
        '["rows.csv"]\narchives = ["a/../../b.zip"]',
        "line 6: source.archives: 'a/../../b.zip' leads out of the data's folder; name what is in it",
    ),
    "images on another drive": (
        '["rows.csv"]',
        '["rows.csv"]\nimage_folders = ["C:/pictures"]',
        "'C:/pictures' leads out of the data's folder",
    ),
    "a number in place of a text": (
        'id = "uid"',
        "id = 7",
        "line 9: columns.id = 7: must be a text",
    ),
    "a name with blanks": (
        'name = "cells"',
        'name = "My Cells"',
        "line 2: name = 'My Cells': may hold small letters",
    ),
    "a name that is taken": (
        'name = "cells"',
        'name = "pmc-vqa"',
        "line 2: name: 'pmc-vqa' is a benchmark of mmbu",
    ),
    "a tolerance of a choice": (
        'kind = "choice"',
        'kind = "choice"\ntolerance = 1',
        "line 24: scorer.tolerance: means nothing to choice",
    ),
    "a tolerance below 0": (
        'kind = "choice"',
        'kind = "number"\ntolerance = -1',
        "line 24: scorer.tolerance = -1",
    ),
    "no number": ('kind = "choice"', 'kind = "number"\ntolerance = nan', "line 24: scorer.tolerance = nan"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str) -> None:
    before, after, words = MISTAKES[mistake]
    assert before in TOML
    with pytest.raises(ConfigError) as caught:
        from_toml(TOML.replace(before, after, 1), "cells.toml")
    text = str(caught.value)
    assert words in text
    assert text.startswith("cells.toml") and text.endswith(".") and "\n" not in text


def test_a_value_where_a_table_must_stand() -> None:
    text = "scorer = 'choice'\n" + TOML.replace('[scorer]\nkind = "choice"\n', "")
    with pytest.raises(ConfigError, match=r"line 1: scorer: must be a table under the header \[scorer\]"):
        from_toml(text, "cells.toml")


def test_places_that_nothing_fills() -> None:
    text = TOML.replace('options = "choices"\n', "").replace('kind = "choice"', 'kind = "exact"')
    with pytest.raises(ConfigError, match=r"line 15: prompt.template: \{options\} has nothing to show"):
        from_toml(text, "cells.toml")
    assert from_toml(text.replace("{options}\n\n", ""), "cells.toml").name == "cells"


def benchmark(*changes: tuple[str, str], form: Form | None = None) -> CustomBenchmark:
    text = TOML
    for before, after in changes:
        assert before in text
        text = text.replace(before, after, 1)
    return from_toml(text, "cells.toml", form or Form())


def samples(made: CustomBenchmark, **changes: Any) -> list[Sample]:
    return list(made.samples(RawRow(position=0, fields=ROW | changes, images=(), where="rows.csv, line 2")))


def test_a_template_is_filled_in_one_pass() -> None:
    made = benchmark(("{question}\n", '{question} {stain type}|{{question}} {"x": {}} {labels}\n'))
    (sample,) = samples(made, question="Is {options} here?")
    text = made.prompt(sample).text
    assert text.startswith('Is {options} here? |{question} {"x": {}} - CT\n- MRI\n- PET\n\nA) CT\nB) MRI')
    (sample,) = samples(made, **{"stain type": "H&E {labels}"})
    assert "Which? H&E {labels}|{question}" in made.prompt(sample).text


def test_columns_that_the_rows_do_not_have_are_named_with_their_line() -> None:
    for line, key, column in (
        (9, "id", "uid"),
        (11, "answer", "label"),
        (12, "options", "choices"),
        (26, "columns", "site"),
    ):
        row = {name: value for name, value in ROW.items() if name != column}
        made = benchmark(('family = "site"\n', "")) if column == "site" else benchmark()
        with pytest.raises(RowError) as caught:
            made.samples(RawRow(position=4, fields=row, images=(), where="rows.csv, line 6"))
        place = line - (column == "site")
        assert (
            f"row number 5: has no column '{column}', which cells.toml, line {place} names for {key}"
            in str(caught.value)
        )
        assert f"(found {', '.join(row)})" in str(caught.value)


EXACT = ('kind = "choice"', 'kind = "exact"')
BAD_ROWS: dict[str, tuple[tuple[tuple[str, str], ...], dict[str, Any], str]] = {
    "no id": ((), {"uid": " "}, "column 'uid' is empty"),
    "no answer": ((), {"label": None}, "column 'label' is empty"),
    "a letter out of range": ((), {"label": "D"}, "names a letter beyond its 3 options"),
    "an answer that is no option": ((), {"label": "PET-CT"}, "neither a letter nor the text of one option"),
    "one option": ((), {"choices": '["CT"]'}, "has 1 option(s); a choice needs at least two"),
    "no options": ((), {"choices": ""}, "has 0 option(s)"),
    "options that are no list": ((), {"choices": "['CT"}, "column 'choices' looks like a list"),
    "no number": (
        (('kind = "choice"', 'kind = "number"'),),
        {"label": "many"},
        "holds no number, or several",
    ),
    "two numbers": (
        (('kind = "choice"', 'kind = "number"'),),
        {"label": "3 or 4"},
        "holds no number, or several",
    ),
    "no box": ((('kind = "choice"', 'kind = "boxes"'),), {"label": "here"}, "holds no box"),
    "no mask": ((('kind = "choice"', 'kind = "masks"'),), {"label": "none"}, "column 'label'"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_rows_that_cannot_be_scored(name: str) -> None:
    changes, row, words = BAD_ROWS[name]
    with pytest.raises(RowError) as caught:
        samples(benchmark(*changes), **row)
    assert words in str(caught.value)


def test_a_choice_can_be_shuffled_and_rotated() -> None:
    made = benchmark(form=Form(circular=True))
    rotations = samples(made)
    assert [(row.id, row.answer, row.options[0]) for row in rotations] == [
        ("u1@0", "B", "CT"),
        ("u1@1", "A", "MRI"),
        ("u1@2", "C", "PET"),
    ]
    assert made.name == "cells+circular"
    (shuffled,) = samples(benchmark(form=Form(shuffle=1)))
    assert shuffled.options["ABC".index(shuffled.answer)] == "MRI"
    reply = Completion(text="<answer>A</answer>", finish=Finish.STOP)
    scores = made.score([ScoreItem(sample=row, answer=made.read(row, reply)) for row in rotations])
    assert [score.correct for score in scores] == [False, True, False]
    assert {score.detail["circular_row"] for score in scores} == {"u1"}
    with pytest.raises(ConfigError, match="line 23: --shuffle-options and --circular are for a choice"):
        benchmark(EXACT, form=Form(circular=True))
    with pytest.raises(ConfigError, match="are for a choice"):
        benchmark(("{options}\n", ""), form=Form(shuffle=1))


def test_masks_are_scored_by_their_overlap() -> None:
    made = benchmark(('kind = "choice"', 'kind = "masks"'))
    truth = json.dumps({"size": [4, 4], "counts": [0, 8, 8]})
    (sample,) = samples(made, label=truth)
    replies = {
        truth: (True, 1.0),
        json.dumps({"size": [4, 4], "counts": [0, 4, 12]}): (True, 0.5),
        json.dumps({"size": [4, 4], "counts": [0, 3, 13]}): (False, 3 / 8),
        json.dumps({"size": [2, 2], "counts": [0, 4]}): (False, 0.0),
        "nothing to see": (False, 0.0),
    }
    items = [
        ScoreItem(
            sample=sample,
            answer=made.read(sample, Completion(text=f"<answer>{reply}</answer>", finish=Finish.STOP)),
        )
        for reply in replies
    ]
    scores = made.score(items)
    assert [(score.correct, score.detail["iou"]) for score in scores] == list(replies.values())
    assert "2 x 2 pixels" in str(scores[3].detail["reason"])

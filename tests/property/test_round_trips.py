"""What goes into the store comes out of it, and of every export, as it was; twice the same is the same."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmbu_async.config import RunConfig, build_config, load_config, to_toml
from mmbu_async.model import FailureKind, Finish, Usage
from mmbu_async.report import export
from mmbu_async.store import RunRecord, Store
from tests.stored_run import RunMaker

SOME = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    [
        "=1+1",
        "-5",
        "+",
        "@x",
        "\ttab",
        "\r\n",
        "\x00",
        "'",
        '"',
        "a,b",
        "\u2028",
        "\x85",
        "null",
        "nan",
        "1e5",
    ]
)
COUNTS = st.integers(0, 2**40)
FIELDS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), TEXT, st.lists(TEXT, max_size=2)),
    max_size=3,
)


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows in every state, with texts that formats trip over."""
    ids = draw(st.lists(TEXT.filter(bool), min_size=1, max_size=5, unique=True))
    found = []
    for row_id in ids:
        row: dict[str, Any] = {
            "id": row_id,
            "question": draw(TEXT),
            "answer": draw(TEXT),
            "options": tuple(draw(st.lists(TEXT, max_size=3))),
            "strata": {"task": tuple(draw(st.lists(TEXT, max_size=2)))},
            "fields": draw(FIELDS),
            "failures": draw(st.lists(st.sampled_from([kind.value for kind in FailureKind]), max_size=2)),
        }
        if draw(st.booleans()):
            row |= {
                "reply": draw(TEXT),
                "reasoning": draw(TEXT),
                "finish": draw(st.sampled_from(Finish)).value,
                "usage": Usage(
                    input_tokens=draw(COUNTS), output_tokens=draw(COUNTS), reported=draw(st.booleans())
                ),
                "cost": draw(st.none() | st.floats(0, 1e6)),
                "judged": draw(st.sampled_from([True, False, None])),
                "judge_reply": draw(TEXT),
                "committed": draw(TEXT),
            }
        found.append(row)
    return found


@contextmanager
def stored(some: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Store, RunRecord, Path]]:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        store, run = RunMaker(Path(folder) / "s.sqlite", stack)(some)
        yield store, run, Path(folder)


@SOME
@given(some=rows())
def test_the_store_gives_back_what_it_was_given(some: list[dict[str, Any]]) -> None:
    with stored(some) as (store, run, _):
        found = list(store.details(run.id))
    assert len(found) == len(some)
    for given_row, detail in zip(some, found, strict=True):
        row = detail.record
        sample = row.sample
        assert (sample.id, sample.question, sample.answer) == (
            given_row["id"],
            given_row["question"],
            given_row["answer"],
        )
        assert sample.options == given_row["options"]
        assert dict(sample.fields) == given_row["fields"]
        assert dict(sample.strata) == given_row["strata"]
        replied = "reply" in given_row
        assert (row.completion is not None) == replied
        # Every attempt is there, failed ones too.
        mine = [call for call in detail.calls if call.judge is None]
        assert len(mine) == len(given_row["failures"]) + replied
        if row.completion is not None:
            reply = row.completion
            assert (reply.text, reply.reasoning) == (given_row["reply"], given_row["reasoning"])
            assert reply.finish.value == given_row["finish"]
            assert reply.usage == given_row["usage"]
            (verdict,) = row.verdicts.values()
            assert (verdict.correct, verdict.reply) == (given_row["judged"], given_row["judge_reply"])


@SOME
@given(some=rows())
def test_every_export_holds_every_row_once_and_its_texts_as_they_are(some: list[dict[str, Any]]) -> None:
    wanted = [(row["id"], row["question"], row.get("reply")) for row in some]
    with stored(some) as (store, run, folder):
        for ending in ("jsonl", "csv", "parquet"):
            file = folder / f"rows.{ending}"
            assert export(store, run, file) == len(some)
            found = _texts(file)
            if ending == "csv":
                assert found == [tuple(map(_as_cell, row)) for row in wanted]
            else:
                assert found == wanted
            again = folder / f"again.{ending}"
            export(store, run, again)
            assert ending == "parquet" or again.read_bytes() == file.read_bytes()


def _texts(file: Path) -> list[tuple[Any, ...]]:
    match file.suffix:
        case ".jsonl":
            # As a reader that splits at Unicode's line ends would have it.
            found = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        case ".csv":
            with file.open(newline="", encoding="utf-8") as opened:
                found = list(csv.DictReader(opened))
        case _:
            found = pq.read_table(file).to_pylist()
    return [(row["row_id"], row["question"], row["reply"]) for row in found]


def _as_cell(text: str | None) -> str:
    """What the export's own words say of CSV: NUL becomes U+2400, and formulas are quoted."""
    if text is None:
        return ""
    text = text.replace("\x00", "\u2400")
    # Python takes more for a number than a spreadsheet does: names of infinity, other scripts' digits, `_`.
    if set(text) <= {*"0123456789.eE+-"}:
        with suppress(ValueError):
            float(text)
            return text
    return f"'{text}" if text[:1] in {*"=+-@\t\r\n＝＋－＠"} and text else text


@SOME
@given(data=st.data())
def test_settings_survive_their_file(data: st.DataObject) -> None:
    text = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=8)
    value = st.one_of(st.booleans(), st.integers(-(2**60), 2**60), text, st.lists(text, max_size=2))
    config = build_config(
        {
            "model": data.draw(text),
            "name": data.draw(text),
            "data": data.draw(st.none() | text),
            "concurrency": data.draw(st.integers(1, 10_000)),
            "temperature": data.draw(st.none() | st.floats(0, 2)),
            "params": data.draw(st.dictionaries(text, value, max_size=3)),
            "where": data.draw(st.dictionaries(text, text, max_size=2)),
            "task": data.draw(st.lists(text, max_size=2)),
            "judge": {
                "model": data.draw(text),
                "params": data.draw(st.dictionaries(text, value, max_size=2)),
            },
        }
    )
    with TemporaryDirectory() as folder:
        file = Path(folder) / "run.toml"
        file.write_text(to_toml(config), encoding="utf-8")
        assert load_config({}, file=file, environment={}) == config
    assert RunConfig.model_validate(orjson.loads(orjson.dumps(config.model_dump(mode="json")))) == config

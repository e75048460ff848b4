"""The row browser's pages over runs that were really run, asked for over real sockets."""

from __future__ import annotations

import io
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from PIL import Image

from mmbu_async import api
from mmbu_async.store import RowRecord
from mmbu_async.viewer import guard
from tests.viewer_kit import FIRST, SECOND, Page, fetch, metadata, served, two_runs
from tests.whole_run import KEY, MINI


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Store and data of two runs over the small split."""
    folder = tmp_path_factory.mktemp("viewer")
    data = folder / "data"
    shutil.copytree(MINI, data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        return two_runs(folder, data), data


@pytest.fixture(scope="module")
def site(made: tuple[Path, Path]) -> Iterator[str]:
    """Pages of the second run with the first beside it."""
    with served(made[0], SECOND, FIRST) as address:
        yield address


@pytest.fixture(scope="module")
def rows(made: tuple[Path, Path]) -> list[RowRecord]:
    return list(api.rows(SECOND, store=made[0]))


def outcome(row: RowRecord) -> str:
    return row.status.value if row.score is None else "right" if row.score.correct else "wrong"


def listed(site: str, **wanted: str) -> list[int]:
    """Keys of the rows of a filter."""
    answer = fetch(site, f"?{urlencode(wanted)}")
    assert answer.status == 200
    return [int(dict(parse_qsl(urlsplit(href).query))["key"]) for href in answer.page.rows]


def row_page(site: str, rows: list[RowRecord], row_id: str, **more: str) -> Page:
    key = next(row.key for row in rows if row.sample.id == row_id)
    answer = fetch(site, f"row?{urlencode({'key': str(key), **more})}")
    assert answer.status == 200
    return answer.page


# ---------------------------------------------------------------- lists


def test_the_list_has_every_row_and_counts_them(site: str, rows: list[RowRecord]) -> None:
    page = fetch(site).page
    assert len(page.rows) == len(rows) == 33
    counts = Counter(map(outcome, rows))
    tabs = {tab["class"]: tab for tab in page.all("a") if "outcome=" in tab["href"]}
    assert {name for name in tabs if name in counts} == set(counts)
    text = " ".join(page.text.split())
    for name, count in counts.items():
        assert f"{name.capitalize()} {count}" in text
    for row in metadata():
        assert row["unique_id"] in page.text


@pytest.mark.parametrize("name", ["right", "wrong", "failed"])
def test_outcomes_filter(site: str, rows: list[RowRecord], name: str) -> None:
    assert listed(site, outcome=name) == [row.key for row in rows if outcome(row) == name]


def test_the_other_filters_filter(site: str, rows: list[RowRecord]) -> None:
    def keys(keep: object) -> list[int]:
        return [row.key for row in rows if callable(keep) and keep(row)]

    assert listed(site, family="counting") == keys(lambda row: row.family == "counting")
    stain = "metadata_stain=H&E"
    assert listed(site, stratum=stain) == keys(
        lambda row: row.sample.strata.get("metadata_stain") == ("H&E",)
    )
    assert listed(site, how="untagged") == keys(lambda row: row.answer and row.answer.how == "untagged")
    truncated = keys(lambda row: row.completion and row.completion.finish == "length")
    assert listed(site, finish="length") == truncated != []
    assert listed(site, finish="refusal") == keys(
        lambda row: row.completion and row.completion.finish == "refusal"
    )
    differ = keys(lambda row: len({v.correct for v in row.verdicts.values()} - {None}) > 1)
    assert listed(site, judges="differ") == differ != []
    assert listed(site, q="RED box") == keys(lambda row: "red box" in row.sample.question)
    first = metadata()[0]["unique_id"]
    assert len(listed(site, q=first, family="counting")) == 1


def test_flips_are_those_between_the_runs(site: str, made: tuple[Path, Path], rows: list[RowRecord]) -> None:
    first = {row.sample.id: outcome(row) for row in api.rows(FIRST, store=made[0])}
    here = {row.key: (outcome(row), first[row.sample.id]) for row in rows}
    for flip, pairs in {
        "gained": {("wrong", "right")},
        "lost": {("right", "wrong")},
        "both wrong": {("wrong", "wrong")},
        "flipped": {("wrong", "right"), ("right", "wrong")},
    }.items():
        assert listed(site, flip=flip) == [key for key, pair in here.items() if pair in pairs], flip
    assert listed(site, flip="gained")
    assert listed(site, run=FIRST, beside=SECOND, flip="lost") == listed(site, flip="gained")


def test_an_address_carries_the_filter_through_all_links(site: str) -> None:
    page = fetch(site, "?family=object%20detection&outcome=right&q=nucleus&pictures=0").page
    wanted = {"family": "object detection", "outcome": "right", "q": "nucleus"}
    for link in page.rows:
        said = dict(parse_qsl(urlsplit(link).query))
        assert said.items() >= wanted.items()
    row = fetch(site, page.rows[1]).page
    (following,) = {link["href"] for link in row.all("a", class_="next")}
    assert following == page.rows[2]
    (up,) = {link["href"] for link in row.all("a", class_="up")}
    assert "family=object%20detection" in up
    assert "outcome=right" in up
    assert fetch(site, up.removeprefix("./").partition("#")[0]).page.rows == page.rows
    carried = {field["name"]: field["value"] for field in page.all("input", type="hidden")}
    assert carried.items() >= {"outcome": "right", "pictures": "0"}.items()
    assert page.all("input", id="q")[0]["value"] == "nucleus"


def test_a_form_with_empty_fields_leads_to_a_short_address(site: str) -> None:
    answer = fetch(site, "?run=second&q=&family=counting&stratum=&how=&finish=&judges=")
    assert answer.status == 303
    assert answer.headers["Location"] == "./?run=second&beside=first&family=counting"


def test_pages_of_a_long_list(site: str, monkeypatch: pytest.MonkeyPatch, rows: list[RowRecord]) -> None:
    monkeypatch.setattr("mmbu_async.viewer.pages.ROWS_A_PAGE", 10)
    seen: list[str] = []
    path = "?family=counting&pictures=0"
    answer = fetch(site, "?pictures=0")
    numbers = []
    while True:
        page = answer.page
        seen += page.rows
        numbers.append(len(page.rows))
        following = page.all("a", rel="next")
        if not following:
            break
        answer = fetch(site, following[0]["href"].removeprefix("./"))
    assert numbers == [10, 10, 10, 3]
    assert len(set(seen)) == 33
    assert "Rows 31–33 of 33" in page.text
    back = fetch(site, page.all("a", rel="prev")[0]["href"].removeprefix("./")).page
    assert back.rows == seen[20:30]
    assert fetch(site, path).page.text.count("No row") == 0
    last = fetch(site, f"?before={2**63 - 1}").page
    assert [urlsplit(href).query for href in last.rows][-1] == urlsplit(
        seen[-1].replace("&pictures=0", "")
    ).query


# ---------------------------------------------------------------- rows


def test_a_row_shows_everything_known_of_it(site: str, rows: list[RowRecord]) -> None:
    row = next(row for row in rows if row.answer and row.answer.how == "untagged" and row.score)
    page = row_page(site, rows, row.sample.id)
    assert row.completion is not None
    shown = [
        row.sample.id,
        row.family,
        row.sample.question,
        row.sample.answer,
        row.completion.text,
        "found by: untagged",
        "You are a medical vision-language assistant",
        "Output format: After your rationale",
        "image 1",
        "odd-judge",
        "plain-judge",
        *(verdict.reply for verdict in row.verdicts.values()),
        "TRUE ANSWER:",
        "TP ",
        f"{row.usage.input_tokens} in",
        row.completion.request_id,
        "metadata_submodality",
        "fluorescence microscopy",
        *row.sample.options,
        "Answer of first",
    ]
    for text in shown:
        assert text in page.text, text


def test_boxes_stand_at_their_pixels(site: str, rows: list[RowRecord]) -> None:
    row = next(row for row in rows if row.score and row.score.detail.get("predicted"))
    assert row.score is not None
    page = row_page(site, rows, row.sample.id)
    (overlay,) = page.all("svg", role="img")
    assert overlay["viewbox"] == "0 0 160 160"
    lines = [
        [float(rect[name]) for name in ("x", "y", "width", "height")]
        for rect in page.all("rect", class_="line")
    ]
    assert row.score.detail["truth"] + row.score.detail["predicted"] == lines[: len(lines) - 1]
    text = " ".join(page.text.split())
    best = row.score.detail["max_iou"]
    assert f"IoU {best:.3f}" in text
    assert "True boxes" in text
    assert "Predicted boxes (1)" in text
    assert "✗ rate_limit (HTTP 429)" in text


def test_a_failed_row_shows_its_true_boxes_and_its_failure(site: str, rows: list[RowRecord]) -> None:
    row = next(row for row in rows if outcome(row) == "failed")
    page = row_page(site, rows, row.sample.id)
    assert row.failure is not None
    assert f"bad_request (HTTP 400): {row.failure.message}" in " ".join(page.text.split())
    assert "this is no wrong answer" in page.text
    assert "No reply." in page.text


def test_rows_are_stepped_through_inside_the_filter(site: str, rows: list[RowRecord]) -> None:
    wrong = [row.key for row in rows if outcome(row) == "wrong"]
    at, seen = f"row?outcome=wrong&key={wrong[0]}", []
    while at:
        page = fetch(site, at).page
        seen.append(int(dict(parse_qsl(urlsplit(at).query))["key"]))
        assert f"{len(seen)} of {len(wrong)} rows" in " ".join(page.text.split())
        following = page.all("a", class_="next")
        at = following[0]["href"] if following else ""
    assert seen == wrong
    right = next(row.key for row in rows if outcome(row) == "right")
    outside = fetch(site, f"row?outcome=wrong&key={right}").page
    assert f"not among the {len(wrong)} rows" in " ".join(outside.text.split())


# ---------------------------------------------------------------- images


def image_of(site: str, rows: list[RowRecord], locator: str, **more: str) -> bytes:
    key = next(row.key for row in rows if row.sample.images[0].locator == locator)
    answer = fetch(site, f"image?{urlencode({'key': str(key), 'n': '0', **more})}")
    assert answer.status == 200
    assert answer.headers["Content-Type"] in ("image/png", "image/jpeg")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    return answer.body


def test_images_come_as_they_are_or_converted_as_for_an_endpoint(site: str, rows: list[RowRecord]) -> None:
    for name in ("images/detect_00.png", "images/retina.jpg"):
        assert image_of(site, rows, name) == (MINI / name).read_bytes()
    shown = Image.open(io.BytesIO(image_of(site, rows, "images/nuclei_01.tif")))
    assert (shown.format, shown.size, shown.mode) == ("PNG", (160, 160), "L")
    small = Image.open(io.BytesIO(image_of(site, rows, "images/ihc.png", size="small")))
    assert max(small.size) == 192


def test_an_image_is_sent_once(site: str, rows: list[RowRecord]) -> None:
    path = f"image?key={rows[0].key}&n=0"
    first = fetch(site, path)
    again = fetch(site, path, If_None_Match=first.headers["ETag"])
    assert (again.status, again.body) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    assert fetch(site, path, If_None_Match='"other"').status == 200
    assert fetch(site, f"{path}&size=small", If_None_Match=first.headers["ETag"]).status == 200


def test_data_that_are_gone_or_changed_are_told_of(made: tuple[Path, Path], rows: list[RowRecord]) -> None:
    store, data = made
    away = data.with_name("away")
    data.rename(away)
    try:
        with served(store, SECOND) as site:
            page = row_page(site, rows, rows[0].sample.id)
            text = " ".join(page.text.split())
            assert "The image cannot be shown:" in text
            assert rows[0].sample.question in text
            assert page.all("img") == []
            key = rows[0].key
            assert fetch(site, f"image?key={key}&n=0").status == 404
            small = fetch(site, f"image?key={key}&n=0&size=small")
            assert (small.status, small.headers["Content-Type"]) == (200, "image/svg+xml")
    finally:
        away.rename(data)
    name = rows[0].sample.images[0].locator
    before = (data / name).read_bytes()
    try:
        (data / name).write_bytes((data / "images" / "cell.png").read_bytes())
        with served(store, SECOND) as site:
            assert "this is not the image that was sent" in row_page(site, rows, rows[0].sample.id).text
        (data / name).unlink()
        with served(store, SECOND) as site:
            gone = " ".join(row_page(site, rows, rows[0].sample.id).text.split())
            assert f"names an image that is not there; add it, or take the row out ({name})" in gone
    finally:
        (data / name).write_bytes(before)


# ---------------------------------------------------------------- who is answered


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1", "[::1]:99", "LOCALHOST"])
def test_names_of_this_machine_are_answered(site: str, host: str) -> None:
    assert fetch(site, "", Host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "evil.example#localhost",
        "",
        "0",
    ],
)
@pytest.mark.parametrize("path", ["", "row?key=1", "image?key=1&n=0", "static/viewer.css", "nothing"])
def test_other_names_are_not(site: str, host: str, path: str) -> None:
    answer = fetch(site, path, Host=host)
    assert answer.status == 403
    assert b"first" not in answer.body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_but_reading_is_answered(site: str, method: str) -> None:
    answer = fetch(site, "", method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_a_head_is_a_get_without_its_body(site: str) -> None:
    answer = fetch(site, "", "HEAD")
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize(
    "path",
    ["", "row?key=1", "image?key=1&n=0", "image?key=1&n=9", "static/viewer.js", "static/icon.svg", "nothing"],
)
def test_every_answer_says_what_it_may_do(site: str, path: str) -> None:
    answer = fetch(site, path)
    assert answer.headers.items() >= guard.HEADERS.items()
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert not [name for name in answer.headers if name.startswith("Access-Control")]


@pytest.mark.parametrize(
    "path",
    [
        "static/../app.py",
        "static/..%2fapp.py",
        "static/%2e%2e/%2e%2e/app.py",
        "static/viewer.css/../../app.py",
        "static//etc/passwd",
        "static/",
        "..%2f..%2fetc/passwd",
        "image/../../etc/passwd",
        "%00",
        "row/1",
    ],
)
def test_no_path_reaches_a_file(site: str, path: str) -> None:
    answer = fetch(site, path)
    assert answer.status == 404
    assert b"root:" not in answer.body
    assert b"import" not in answer.body


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("?outcome=odd", 400, "“odd” is nothing that “outcome” can be: it is one of right, wrong"),
        ("?nonsense=1", 400, "a part “nonsense”, which means nothing"),
        ("?stratum=plain", 400, "write attribute=value"),
        ("?run=other", 400, "was not started for a run “other”"),
        ("?after=x", 400, "“x” is no number"),
        ("?before=99999999999999999999", 400, "no number"),
        ("row", 400, "The address lacks “key”"),
        ("row?key=-1", 400, "no number"),
        ("row?key=999", 404, "Run “second” has no row of key 999"),
        ("image?key=1", 400, "The address lacks “n”"),
        ("image?key=1&n=7", 404, "There is no such image"),
        ("image?key=999&n=0", 404, "There is no such image"),
        ("nothing", 404, "No page has this address"),
        ("?q=%3Cscript%3E&outcome=%3Cscript%3Ealert(1)%3C/script%3E", 400, "“<script>alert(1)</script>” is"),
    ],
)
def test_what_means_nothing_is_said_in_a_sentence(site: str, path: str, status: int, words: str) -> None:
    answer = fetch(site, path)
    assert answer.status == status
    assert words in " ".join(answer.page.text.split())
    assert [tag for tag in answer.page.all("script") if "src" not in tag] == []


def test_the_pages_ask_for_nothing_from_elsewhere(site: str, rows: list[RowRecord]) -> None:
    for path in ("", f"row?key={rows[0].key}", "?outcome=odd"):
        page = fetch(site, path).page
        for tag, attributes in page.tags:
            for name in ("src", "href", "action"):
                link = attributes.get(name, "")
                assert not urlsplit(link).scheme, (tag, link)
                assert not link.startswith("/"), (tag, link)
            assert not [name for name in attributes if name.startswith("on") or name == "style"], tag

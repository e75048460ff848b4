"""The service with a real scheduler: runs to their end, and what is then read of them through the API."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from mmbu_async import api as package
from mmbu_async.simulator.config import Latency
from tests.pages import read_page
from tests.service_kit import TOKEN, api
from tests.viewer_kit import Page
from tests.whole_service import Service, whole_service

ROWS = 33
"""Of the small split."""
ODD = "a run: 50 % & more/less?"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    with whole_service(folder, token=TOKEN) as found:
        found.submit(ODD)
        found.submit("other", model="m-2")
        for name in (ODD, "other"):
            assert found.wait_for(name, "done", "incomplete", "failed") == "done"
        yield found


def test_a_run_ends_with_all_its_rows(service: Service) -> None:
    found = service.get(api(ODD)).json
    assert (found["job"]["exit_code"], found["job"]["message"]) == (0, "")
    progress = found["progress"]
    assert (progress["done"], progress["total"], progress["failed"]) == (ROWS, ROWS, 0)
    assert progress["cost_usd"] > 0
    assert service.get(api(ODD, "/history")).json["points"]


def test_reports_are_those_of_the_command(service: Service) -> None:
    told = service.get(api(ODD, "/report"))
    assert told.headers["Content-Type"].startswith("application/json")
    assert told.json["run"] == ODD
    assert told.json["complete"] is True
    text = service.get(api(ODD, "/report?format=md"))
    assert text.headers["Content-Type"].startswith("text/markdown")
    assert "# mmbu-public" in text.text
    page = service.get(api(ODD, "/report?format=html"))
    assert page.headers["Content-Type"].startswith("text/html")
    assert "script" not in page.headers["Content-Security-Policy"]
    read_page(page.text)


def test_exports_hold_every_row(service: Service) -> None:
    lines = service.get(api(ODD, "/export"))
    assert len([json.loads(line) for line in lines.text.splitlines()]) == ROWS
    assert lines.headers["Content-Disposition"] == 'attachment; filename="a_run_50_more_less-rows.jsonl"'
    rows = list(csv.DictReader(io.StringIO(service.get(api(ODD, "/export?format=csv")).text)))
    assert len(rows) == ROWS
    table = pq.read_table(io.BytesIO(service.get(api(ODD, "/export?format=parquet")).body))
    assert table.num_rows == ROWS
    assert service.get(api(ODD, "/export?format=leaderboard")).json["run"] == ODD
    assert len(service.get(api(ODD, "/export?format=submission")).json) == ROWS


def test_no_export_leaves_a_file(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert service.get(api(ODD, "/export?format=csv")).status == 200
    assert service.get(api("none", "/export")).status == 404
    service.wait(lambda: not list(tmp_path.iterdir()))


def test_runs_are_compared(service: Service) -> None:
    names = f"run={quote(ODD, safe='')}&run=other"
    found = service.get(api(path=f"/compare?{names}")).json
    assert found["runs"][0]["name"] == ODD
    assert "<svg" in service.get(api(path=f"/compare?{names}&format=html")).text
    assert service.get(api(path=f"/compare?{names}&format=md")).text.startswith(("#", "**"))
    assert service.get(api(path="/compare?run=other&run=none")).status == 404
    assert service.get(api(path="/compare?run=other&run=other")).status == 422


def test_the_row_browser_lies_below_the_service(service: Service) -> None:
    base = f"/rows/{quote(ODD, safe='')}/"
    listed = Page(service.get(base).text)
    assert len(listed.rows) == ROWS
    assert Page(service.get(f"{base}{listed.rows[0]}").text).all("h1")
    image = next(one["src"] for one in listed.all("img") if one["src"].startswith("image"))
    assert service.get(f"{base}{image}").headers["Content-Type"].startswith("image/")
    style = next(one["href"] for one in listed.all("link", rel="stylesheet"))
    assert service.get(f"{base}{style}").status == 200
    assert "other" in service.get(f"{base}beside/other/").text
    for path in ("/rows/none/", f"{base}beside/none/", f"{base}static/..%2Fapp.py", f"{base}nothing"):
        assert service.get(path).status == 404, path
    assert service.site.fetch(base).status == 401
    assert service.site.fetch(f"{base}{style}").status == 401


def test_all_runs_of_the_store_are_listed(service: Service) -> None:
    runs = {one["run"]: one for one in service.get(api(path="/stored")).json["runs"]}
    assert runs[ODD]["scored"] == ROWS
    assert runs["other"]["model"] == "m-2"


def test_an_estimate_is_that_of_a_dry_run(service: Service) -> None:
    here = {"endpoint": "here", "input_price": 1.0, "output_price": 2.0}
    settings = {"model": "m", "data": "mini", "limit": 7, **here, "judge": {"model": "j", **here}}
    found = service.post(api(path="/estimate"), {"settings": settings}).json
    assert (found["rows"], found["dataset_rows"], found["problem_count"]) == (7, ROWS, 0)
    assert found["model"]["calls"] == 7
    assert found["cost_usd"] == pytest.approx(found["model"]["cost_usd"] + found["judges"][0]["cost_usd"])


@pytest.mark.parametrize(
    "settings",
    [
        {"data": "/etc"},
        {"data": "../mini"},
        {"store": "/elsewhere/x.sqlite"},
        {"image_limits": "/etc/passwd"},
        {"benchmark": "/etc/passwd.toml"},
        {"benchmark": "x.toml"},
        {"base_url": "http://evil.example/v1"},
        {"api_key_env": "PATH"},
        {"endpoint": "elsewhere"},
        {"panel": "/etc/passwd"},
        {"judge": {"model": "j", "endpoint": "here", "base_url": "http://evil.example"}},
        {"panel": [{"model": "j", "endpoint": "here", "api_key_env": "HOME"}]},
        {"dask_scheduler": "tcp://evil.example:8786"},
        {"nonsense": 1},
    ],
)
def test_no_setting_reaches_beyond_what_the_service_was_given(service: Service, settings: Any) -> None:
    body = {"settings": {"model": "m", "data": "mini", "endpoint": "here", "name": "evil"} | settings}
    for path in ("/runs", "/estimate"):
        answer = service.post(api(path=path), body)
        assert answer.status == 422, answer.text
        assert "root:" not in answer.text
    assert service.get(api("evil")).status == 404


def test_other_settings_for_a_run_that_is_there_are_a_conflict(service: Service) -> None:
    here = {"endpoint": "here"}
    body = {
        "settings": {"name": "other", "model": "m-3", "data": "mini", **here, "judge": {"model": "j", **here}}
    }
    answer = service.post(api(path="/runs"), body)
    assert (answer.status, answer.json["error"]) == (409, "RunChangedError")
    assert any("m-3" in line for line in answer.json["changes"])


def test_a_rejudge_is_queued_and_done(service: Service) -> None:
    judge = {"model": "j-2", "endpoint": "here", "input_price": 1.0, "output_price": 2.0}
    answer = service.post(api("other", "/rejudge"), {"changes": {"judge": judge}})
    assert (answer.status, answer.json["kind"]) == (201, "rejudge"), answer.text
    assert answer.headers["Location"] == "../other"
    assert service.wait_for("other", "done", "incomplete", "failed") == "done"
    assert service.get(api("other", "/report")).json["ran"]["judge"]["model"] == "j-2"


def test_a_run_is_paused_and_goes_on(tmp_path: Path) -> None:
    with whole_service(tmp_path, latency=Latency.parse("0.05")) as service:
        service.submit("r", concurrency=2)
        service.wait(lambda: (service.get(api("r")).json["progress"] or {"done": 0})["done"] > 2)
        assert service.post(api("r", "/pause")).json["state"] == "paused"
        service.wait(lambda: service.get(api("r")).json["progress"]["in_flight"] == 0)
        assert service.post(api("r", "/resume")).status == 200
        assert service.wait_for("r", "done", "failed") == "done"
        assert service.post(api("r", "/cancel")).status == 409
        lines = service.get(api("r", "/logs")).json["lines"]
        assert any("paused" in line for line in lines)
    assert package.report("r", store=tmp_path / "store.sqlite").complete

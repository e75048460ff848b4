"""The API of the service over a real socket: what it does, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mmbu_async.errors import (
    ConfigError,
    EndpointError,
    MmbuError,
    RunChangedError,
    RunNotFoundError,
    RunStateError,
    ServiceStoppingError,
    StoreError,
    StoreFullError,
    StoreLockedError,
)
from mmbu_async.service.jobs import JobState
from mmbu_async.service.problems import Problem
from tests.service_kit import Answered, FakeDesk, Site, api, served

ODD = "a/b c?#ü%2F"
"""A name that must arrive whole."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with served(tmp_path / "store.sqlite") as found:
        yield found


def problem(answer: Answered, status: int) -> Problem:
    assert answer.status == status, answer.text
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    told = Problem.model_validate_json(answer.body)
    assert told.status == status
    assert told.detail
    assert "\n" not in told.detail
    return told


def test_a_run_is_submitted_found_and_listed(site: Site) -> None:
    settings = {"model": "m", "name": ODD, "params": {"x": [1, None]}}
    made = site.post(api(path="/runs"), {"settings": settings, "priority": 3})
    assert made.status == 201
    assert made.json["state"] == "queued"
    assert made.json["settings"] == settings
    assert made.headers["Location"] == "runs/a%2Fb%20c%3F%23%C3%BC%252F"
    found = site.fetch(api(path=f"/{made.headers['Location']}"))
    assert found.json == {"job": made.json, "progress": None}
    site.do(lambda: site.desk.add("other", JobState.DONE))
    listed = site.fetch(api(path="/runs")).json["runs"]
    assert [one["job"]["run"] for one in listed] == ["other", ODD]
    listed = site.fetch(api(path="/runs?state=queued&state=running")).json["runs"]
    assert [one["job"]["run"] for one in listed] == [ODD]


def test_a_list_has_a_run_once_with_its_newest_job(site: Site) -> None:
    for state in (JobState.DONE, JobState.QUEUED):
        site.do(lambda state=state: site.desk.add("r", state))
    (one,) = site.fetch(api(path="/runs")).json["runs"]
    assert (one["job"]["id"], one["job"]["state"]) == (2, "queued")
    assert site.fetch(api(path="/runs?state=done")).json["runs"] == []


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/pause", None, {"state": "paused"}),
        ("/pause", {}, {"state": "paused"}),
        ("/resume", None, {"state": "running"}),
        ("/resume", {"changes": {"rpm": 10}}, {"state": "running"}),
        ("/cancel", None, {"state": "cancelled"}),
        ("/priority", {"priority": -4}, {"priority": -4}),
        ("/rejudge", {"failed": True}, {"id": 2}),
    ],
)
def test_a_run_is_steered(site: Site, path: str, body: Any, expected: dict[str, Any]) -> None:
    site.do(lambda: site.desk.add(ODD, JobState.RUNNING))
    answer = site.post(api(ODD, path), body)
    assert answer.status == (201 if path == "/rejudge" else 200), answer.text
    assert answer.json | expected == answer.json


def test_limits_say_what_changes_and_nothing_else(site: Site) -> None:
    site.do(lambda: site.desk.add("r"))
    body = {"model": {"rpm": None, "concurrency": 4}, "judges": {"judge": {"tpm": 5.5}}}
    assert site.post(api("r", "/limit"), body).json == {"limits": ["model: at most 4 calls at once"]}
    assert site.desk.asked == [("limit", {"rpm": None, "concurrency": 4, "judge": {"tpm": 5.5}})]
    assert site.post(api("r", "/limit")).json == {"limits": ["model: at most 4 calls at once"]}
    assert site.desk.asked.pop() == ("limit", {})
    problem(site.post(api("r", "/limit"), {"model": {"rpm": -1}}), 422)
    problem(site.post(api("r", "/limit"), {"model": {"rpm": 1}, "judges": {"rpm": {"rpm": 1}}}), 422)
    assert len(site.desk.asked) == 1


def test_progress_history_logs_and_choices(site: Site) -> None:
    def work() -> None:
        site.desk.add("r", JobState.RUNNING)
        for done in (10, 20):
            site.desk.move("r", done, errors={"timeout": 2}, eta_s=None)
        site.desk.log("r", "a line")

    site.do(work)
    found = site.fetch(api("r")).json
    assert found["progress"]["done"] == 20
    assert found["progress"]["eta_s"] is None
    assert [point["done"] for point in site.fetch(api("r", "/history")).json["points"]] == [10, 20]
    assert site.fetch(api("r", "/logs")).json == {"lines": ["a line"]}
    choices = site.fetch(api(path="/choices")).json
    assert choices["data"] == ["mini"]
    assert "mmbu-public" in choices["benchmarks"]
    assert choices["endpoints"] == [{"name": "here", "endpoint": "openai", "models": ["m-1", "m-2"]}]
    # Where it lies is nobody's business.
    assert "127.0.0.1" not in site.fetch(api(path="/choices")).text


def test_an_estimate_adds_up_its_sides(site: Site) -> None:
    found = site.post(api(path="/estimate"), {"settings": {"model": "m"}}).json
    assert (found["rows"], found["cost_usd"], found["seconds"]) == (40, 1.5, 90.0)
    assert [side["name"] for side in found["judges"]] == ["judge"]


def test_unknown_fields_and_parameters_are_refused(site: Site) -> None:
    site.do(lambda: site.desk.add("r"))
    told = problem(site.post(api(path="/runs"), {"settings": {"model": "m"}, "stroe": "x"}), 422)
    assert "'stroe'" in told.detail
    problem(site.post(api("r", "/pause"), {"now": True}), 422)
    told = problem(site.fetch(api(path="/runs?stat=done")), 422)
    assert "'stat'" in told.detail
    assert "state" in told.detail
    problem(site.fetch(api("r", "?x=1")), 422)
    problem(site.fetch(api("r", "/report?format=json&format=html")), 422)
    problem(site.fetch(api(path="/runs?state=asleep")), 422)
    problem(site.post(api("r", "/priority"), {"priority": "7"}), 422)
    problem(site.post(api("r", "/priority"), {}), 422)
    problem(site.fetch(api(path="/compare?run=a")), 422)


def test_bodies_are_read_strictly(site: Site) -> None:
    runs = api(path="/runs")
    problem(site.fetch(runs, "POST", b"{", Content_Type="application/json"), 400)
    problem(
        site.fetch(runs, "POST", b'{"settings": {"model": "\\ud800"}}', Content_Type="application/json"), 400
    )
    problem(site.fetch(runs, "POST", b"[1]", Content_Type="application/json"), 422)
    problem(site.fetch(runs, "POST", b"{}", Content_Type="text/plain"), 415)
    problem(site.fetch(runs, "POST", b"a=b", Content_Type="application/x-www-form-urlencoded"), 415)
    deep = b'{"settings": {"model": "m", "params": ' + b'{"a":' * 200 + b"1" + b"}" * 202
    assert "deep" in problem(site.fetch(runs, "POST", deep, Content_Type="application/json"), 422).detail
    large = b'{"settings": {"model": "' + b"m" * 300_000 + b'"}}'
    problem(site.fetch(runs, "POST", large, Content_Type="application/json"), 413)
    assert site.desk.all == []


def test_what_is_not_there_and_not_allowed(site: Site) -> None:
    assert problem(site.fetch(api("none")), 404).error == "RunNotFoundError"
    assert problem(site.fetch("/api/v1/nothing"), 404).error == "HTTPError"
    for method in ("PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"):
        answer = site.fetch(api(path="/runs"), method)
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, POST")
    assert problem(site.fetch(api("none", "/pause")), 405).title == "Method Not Allowed"
    told = problem(site.post(api("none", "/pause")), 404)
    assert told.error == "RunNotFoundError"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RunNotFoundError("x."), 404),
        (RunChangedError("x.", ("model: a -> b",)), 409),
        (RunStateError("x."), 409),
        (StoreLockedError("x."), 409),
        (ServiceStoppingError("x."), 503),
        (StoreFullError("x."), 507),
        (StoreError("x."), 500),
        (EndpointError("x."), 502),
        (ConfigError("half a character: \udce4."), 422),
        (ConfigError("{store}/x: no place is told."), 422),
    ],
)
def test_named_errors_have_their_status(site: Site, tmp_path: Path, error: MmbuError, status: int) -> None:
    async def fail(*_: Any, **__: Any) -> Any:
        if "{store}" in str(error):
            raise ConfigError(str(error).format(store=tmp_path / "store.sqlite"))
        raise error

    site.desk.submit = fail
    told = problem(site.post(api(path="/runs"), {"settings": {"model": "m"}}), status)
    assert told.error == type(error).__name__
    assert str(tmp_path) not in told.detail
    assert told.changes == (["model: a -> b"] if status == 409 and told.error == "RunChangedError" else [])


def test_an_error_that_nobody_meant_tells_nothing(site: Site) -> None:
    told = problem(site.post(api(path="/runs"), {"settings": {"model": "boom"}}), 500)
    assert "secret" not in told.model_dump_json()
    assert "ZeroDivision" not in told.model_dump_json()


def test_who_follows_a_link_into_the_api_gets_a_page(site: Site) -> None:
    path = api("none", "/report?format=html")
    page = site.fetch(path, Accept="text/html,*/*", Sec_Fetch_Mode="navigate")
    assert (page.status, page.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert 'href="../../../../static/service.css"' in page.text
    problem(site.fetch(path, Accept="text/html,*/*", Sec_Fetch_Mode="cors"), 404)


def test_health_readiness_and_metrics(site: Site) -> None:
    def work() -> None:
        site.desk.add('q"\\\n', JobState.RUNNING)
        site.desk.move('q"\\\n', 30, errors={"timeout": 2})

    site.do(work)
    assert site.fetch("/healthz").text == "ok\n"
    assert site.fetch("/readyz").status == 200
    problem(site.fetch(api("none")), 404)
    text = site.fetch("/metrics").text
    run = 'run="q\\"\\\\\\n"'
    assert f"mmbu_run_rows_done{{{run}}} 30\n" in text
    assert f'mmbu_run_errors{{{run},kind="timeout"}} 2\n' in text
    assert 'mmbu_jobs{state="running"} 1\n' in text
    assert 'mmbu_http_requests_total{route="/api/v1/runs/{run}",method="GET",status="404"} 1\n' in text
    assert 'mmbu_http_request_seconds_count{route="/healthz"} 1\n' in text
    # A client's own words are no label.
    assert "none" not in text
    site.desk.is_ready = False
    assert site.fetch("/readyz").status == 503
    # It may be there, and not be found yet.
    assert problem(site.fetch(api("none")), 503).error == "ServiceStoppingError"


def test_the_description_has_every_operation_and_no_other(site: Site) -> None:
    described = site.fetch(f"{api(path='/openapi.json')}").json
    assert described["openapi"] == "3.1.0"
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            site.do(lambda: site.desk.add("r"))
            answer = site.fetch(path.replace("{run}", "r"), "HEAD")
            assert method.upper() in answer.headers["Allow"].split(", "), path
            assert operation["summary"].endswith(".")
            assert {"401", "403", "500"} <= set(operation["responses"])
    schemas = described["components"]["schemas"]
    assert schemas["SubmitAsked"]["additionalProperties"] is False
    assert schemas["JobTold"]["required"] == list(schemas["JobTold"]["properties"])


def test_the_desk_of_tests_is_a_desk() -> None:
    """Checked by mypy: what the tests speak to is what the service speaks to."""
    from mmbu_async.service.jobs import Desk

    desk: Desk = FakeDesk()
    assert desk.jobs() == []

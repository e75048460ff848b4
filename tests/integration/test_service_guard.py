"""Who is let in: nobody without the token learns anything, and no page of another site is answered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest

from mmbu_async.errors import ConfigError
from mmbu_async.service.auth import COOKIE, SESSION_S, TOKEN_VARIABLE, Token, token_from
from mmbu_async.service.guard import Guard
from mmbu_async.service.jobs import JobState
from mmbu_async.service.server import Place
from tests.service_kit import SECRET_MODEL, TOKEN, FakeDesk, Site, api, served

RUN = "a-run-nobody-may-hear-of"
FORM = {"Content_Type": "application/x-www-form-urlencoded"}
PATHS = [
    *("/", "/new", f"/run?name={RUN}", "/metrics", "/nothing", f"/rows/{RUN}/", "/static/../../x"),
    *(api(path=path) for path in ("/runs", "/events", "/choices", "/stored", "/openapi.json", "/nothing")),
    *(api(path=f"/compare?run={RUN}&run=b"),),
    *(api(RUN, path) for path in ("", "/events", "/logs", "/history", "/report?format=html", "/export")),
]
POSTS = [api(path="/runs"), api(path="/estimate"), "/logout"]
POSTS += [api(RUN, f"/{name}") for name in ("pause", "resume", "cancel", "limit", "priority", "rejudge")]
WRONG = [
    {},
    {"Authorization": f"Bearer {TOKEN[:-1]}"},
    {"Authorization": f"Bearer {TOKEN}x"},
    {"Authorization": TOKEN},
    {"Authorization": f"Basic {TOKEN}"},
    {"Authorization": "Bearer "},
    {"Authorization": "Bearer ü"},
    {"Cookie": f"{COOKIE}={TOKEN}"},
    {"Cookie": f"{COOKIE}=9999999999.00.{'0' * 64}"},
    {"Cookie": f"{COOKIE}=.."},
    {"Cookie": f"{COOKIE}="},
]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    desk = FakeDesk()
    desk.add(RUN, JobState.RUNNING)
    with served(tmp_path / "store.sqlite", desk=desk, guard=Guard(token=Token(TOKEN))) as found:
        yield found


def cookie_of(site: Site) -> tuple[str, SimpleCookie]:
    answer = site.fetch("/login", "POST", f"token={TOKEN}".encode(), **FORM)
    assert (answer.status, answer.headers["Location"]) == (303, "./")
    found = SimpleCookie(answer.headers["Set-Cookie"])
    return found[COOKIE].value, found


@pytest.mark.parametrize("wrong", WRONG)
def test_without_the_token_nothing_is_told(site: Site, wrong: dict[str, Any]) -> None:
    for accept in ("*/*", "text/html"):
        told = set()
        for path in PATHS:
            answer = site.fetch(path, **{"Accept": accept, **wrong})
            assert answer.status == 401, path
            assert "WWW-Authenticate" in answer.headers
            said = f"{answer.headers}{answer.text}"
            for secret in (TOKEN, RUN, SECRET_MODEL, "RunNotFound", "Python", "aiohttp"):
                assert secret not in said
            # Whether there is something under an address is not to be told from the answer either.
            told.add(re.sub(r"(\.\./)+|\./", "", answer.text))
        assert len(told) <= 2
    for path in POSTS:
        assert site.post(path, {}, **wrong).status == 401, path
    assert site.desk.job(RUN).state == JobState.RUNNING


def test_with_the_token_all_is_there(site: Site) -> None:
    for scheme in ("Bearer", "bearer"):
        assert site.fetch(api(RUN), Authorization=f"{scheme} {TOKEN}").status == 200
    assert site.fetch("/metrics", Authorization=f"Bearer {TOKEN}").status == 200
    with site.events(api(RUN, "/events"), Authorization=f"Bearer {TOKEN}") as events:
        assert next(events).run == RUN


def test_health_and_the_door_are_open(site: Site) -> None:
    for path in ("/healthz", "/readyz", "/static/service.css", "/static/icon.svg"):
        assert site.fetch(path).status == 200
    answer = site.fetch("/login")
    assert answer.status == 401
    assert "<form" in answer.text


def test_the_page_logs_in_with_a_cookie_that_scripts_and_other_sites_cannot_use(site: Site) -> None:
    value, cookie = cookie_of(site)
    morsel = cookie[COOKIE]
    assert (morsel["httponly"], morsel["samesite"], morsel["path"]) == (True, "Strict", "/")
    assert int(morsel["max-age"]) == SESSION_S
    assert TOKEN not in value
    assert site.fetch(api(RUN), Cookie=f"{COOKIE}={value}").status == 200
    assert site.fetch("/", Cookie=f"{COOKIE}={value}", Accept="text/html").status == 200
    # A wrong header is not healed by the cookie, and a changed cookie is none.
    assert site.fetch(api(RUN), Cookie=f"{COOKIE}={value}", Authorization="Bearer x").status == 401
    end, rest = value.split(".", 1)
    assert site.fetch(api(RUN), Cookie=f"{COOKIE}={int(end) + 1}.{rest}").status == 401
    assert site.fetch("/login", Cookie=f"{COOKIE}={value}").status == 303
    gone = site.fetch("/logout", "POST", b"", Cookie=f"{COOKIE}={value}")
    assert SimpleCookie(gone.headers["Set-Cookie"])[COOKIE]["max-age"] == "0"


def test_a_wrong_token_is_not_let_in(site: Site) -> None:
    for body in (b"token=wrong", b"", b"token=" + TOKEN.encode() + b"&token=x", b"other=1"):
        answer = site.fetch("/login", "POST", body, **FORM)
        if b"&" not in body:
            assert answer.status == 401
            assert "Set-Cookie" not in answer.headers
    assert site.fetch("/login", "POST", b"token=" + b"x" * 5000, **FORM).status == 413
    assert site.post("/login", {"token": TOKEN}).status == 415


def test_a_cookie_ends(tmp_path: Path) -> None:
    now = [1_000_000.0]
    token = Token(TOKEN, clock=lambda: now[0])
    with served(tmp_path / "store.sqlite", guard=Guard(token=token)) as site:
        value, _ = cookie_of(site)
        now[0] += SESSION_S - 1
        assert site.fetch(api(path="/runs"), Cookie=f"{COOKIE}={value}").status == 200
        now[0] += 2
        assert site.fetch(api(path="/runs"), Cookie=f"{COOKIE}={value}").status == 401
    with served(tmp_path / "store.sqlite", guard=Guard(token=Token(TOKEN + "0"))) as site:
        assert site.fetch(api(path="/runs"), Cookie=f"{COOKIE}={value}").status == 401


@pytest.mark.parametrize(
    "weak", ["short", "with a blank in the middle", "ümläut-0123456789", "line\x07-0123456789"]
)
def test_weak_tokens_are_refused_and_not_repeated(weak: str) -> None:
    with pytest.raises(ConfigError) as caught:
        token_from({TOKEN_VARIABLE: weak})
    assert weak not in str(caught.value)
    assert TOKEN_VARIABLE in str(caught.value)
    assert token_from({TOKEN_VARIABLE: " "}) is None
    assert TOKEN not in repr(token_from({TOKEN_VARIABLE: TOKEN}))


def test_only_names_of_this_machine_are_answered(tmp_path: Path) -> None:
    with served(tmp_path / "store.sqlite") as site:
        for host in ("127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:8080"):
            assert site.fetch("/healthz", Host=host).status == 200, host
        for host in ("evil.example", "127.0.0.1.evil.example", "10.0.0.5", "localhost@evil", "", "[::1"):
            for path in ("/", "/healthz", api(path="/runs")):
                assert site.fetch(path, Host=host).status in (400, 403), host
    guard = Guard(token=Token(TOKEN), names=frozenset({"runs.example"}), beyond=True)
    with served(tmp_path / "store.sqlite", guard=guard) as site:
        for host in ("10.0.0.5:80", "runs.example", "Runs.Example.:443", "[fd00::1]"):
            assert site.fetch("/healthz", Host=host).status == 200, host
        assert site.fetch("/healthz", Host="evil.example").status == 403


def test_pages_of_other_sites_are_not_answered(tmp_path: Path) -> None:
    with served(tmp_path / "store.sqlite") as site:
        own = site.url.removeprefix("http://")
        site.do(lambda: site.desk.add("r", JobState.RUNNING))
        foreign = [
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": f"http://{own}.evil.example"},
            {"Origin": "http://127.0.0.1:1"},
            {"Sec_Fetch_Site": "cross-site"},
            {"Sec_Fetch_Site": "same-site"},
        ]
        for headers in foreign:
            assert site.post(api("r", "/cancel"), {}, **headers).status == 403, headers
            assert site.fetch("/logout", "POST", b"", **headers).status == 403
        assert site.desk.job("r").state == JobState.RUNNING
        assert site.fetch(api("r"), Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors").status == 403
        assert site.fetch("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate").status == 200
        assert site.post(api("r", "/pause"), {}, Origin=site.url, Sec_Fetch_Site="same-origin").status == 200
        # Closed to other origins: no answer ever says that one may read it.
        answer = site.fetch(api("r"), "OPTIONS", Origin="http://evil.example")
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_every_answer_forbids_to_be_embedded_and_kept(site: Site) -> None:
    for path in ("/login", "/healthz", "/nothing", api(path="/runs"), "/static/run.js"):
        headers = site.fetch(path, Authorization=f"Bearer {TOKEN}").headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Server"] == "mmbu"
        assert headers["Cache-Control"] in ("no-store", "no-cache")


def test_no_path_of_a_client_reaches_the_files(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret-of-a-file", encoding="utf-8")
    with served(tmp_path / "store.sqlite") as site:
        for path in (
            *("/static/../service/app.py", "/static/..%2F..%2Fapp.py", "/static/%2e%2e/app.py"),
            *(f"/static/{tmp_path}/secret.txt", "/rows/..%2Fsecret.txt/", "/rows/../secret.txt"),
            *(api("../../secret.txt", "/export"), api("../../secret.txt", "/report"), "/static/\\..\\app.py"),
        ):
            answer = site.fetch(path)
            assert answer.status in (400, 404, 500), path
            assert "secret-of-a-file" not in answer.text
            assert "import" not in answer.text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "127.0.0.1.example.org", ""])  # noqa: S104
def test_others_may_come_only_with_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match=TOKEN_VARIABLE):
        Place(host=host).guard()
    assert Place(host=host, token=Token(TOKEN)).guard().beyond
    for here in ("127.0.0.1", "127.8.0.1", "localhost", "::1", "[::1]"):
        assert not Place(host=here).guard().beyond

"""Pages in a real Chromium, headless: how they look, what they ask for, what they complain of.

Without a Chromium the tests are skipped, saying so; with MMBU_REQUIRE_BROWSER=1 they fail instead. With
MMBU_SCREENSHOTS=FOLDER the pictures that they take are kept there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
DESKTOP, PHONE = 1280, 390
"""Widths in CSS pixels."""
WIDTHS = pytest.mark.parametrize("width", [DESKTOP, PHONE])
PATIENCE_MS = 20_000


class Chromium:
    """One browser a test, started with the first page that it opens.

    Playwright's loop runs in the test's own thread from then on: what calls `asyncio.run` must come before.
    """

    def __init__(self, screenshots: Path, stack: ExitStack) -> None:
        self.screenshots = screenshots
        self.complaints: list[str] = []
        """What the consoles of all pages said of errors and warnings, and requests that left the origin of
        their page."""
        self._stack = stack
        self._browser: Any = None

    def open(self, url: str, *, width: int = DESKTOP, dark: bool = False, javascript: bool = True) -> Any:
        """A page of a browsing context of its own."""
        if self._browser is None:
            self._browser = self._start()
        context = self._browser.new_context(
            viewport={"width": width, "height": 844 if width == PHONE else 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=javascript,
            is_mobile=width == PHONE,
            has_touch=width == PHONE,
        )
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.on("console", self._note_console)
        page.on("pageerror", lambda error: self.complaints.append(f"page error: {error}"))
        page.on("request", lambda request: self._note_request(url, request.url))
        page.goto(url)
        return page

    def shoot(self, page: Any, name: str, *, whole: bool = True) -> Path:
        """A picture of the page, of its whole length or of what the window shows."""
        file = self.screenshots / f"{name}.png"
        page.screenshot(path=file, full_page=whole)
        return file

    def leave(self) -> None:
        """Close every page. What a page says when its server goes away is no complaint."""
        if self._browser is not None:
            for context in self._browser.contexts:
                context.close()

    def _start(self) -> Any:
        from playwright.sync_api import sync_playwright

        playwright = self._stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=chromium_program(), args=list(FLAGS))
        self._stack.callback(browser.close)
        return browser

    def _note_console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _note_request(self, page: str, asked: str) -> None:
        own, other = urlsplit(page), urlsplit(asked)
        if other.scheme not in ("data", "blob") and (own.scheme, own.netloc) != (other.scheme, other.netloc):
            self.complaints.append(f"request to {asked}")


@pytest.fixture
def chromium(screenshots: Path) -> Iterator[Chromium]:
    """A browser whose pages must not complain: a test that expects it to clears `complaints`."""
    if problem := _missing():
        if os.environ.get("MMBU_REQUIRE_BROWSER") == "1":
            pytest.fail(problem)
        pytest.skip(problem)
    with ExitStack() as stack:
        browser = Chromium(screenshots, stack)
        yield browser
    assert browser.complaints == []


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    """Where pictures go."""
    folder = Path(os.environ.get("MMBU_SCREENSHOTS") or tmp_path / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def chromium_program() -> str:
    """'' where there is none."""
    return shutil.which("chromium") or next(
        (path for path in ("/usr/bin/chromium",) if Path(path).exists()), ""
    )


def _missing() -> str:
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "playwright is not installed; `pip install -e '.[dev]'` brings it"
    return "" if chromium_program() else "there is no chromium here; install one to test pages in it"

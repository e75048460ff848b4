"""What every page must be: well formed, complete in itself, harmless, and usable without seeing it."""

from __future__ import annotations

import csv
import io
import re
from base64 import b64decode
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree

from tests.hostile import steering

VOID = frozenset(
    {"meta", "link", "br", "hr", "img", "input", "source", "wbr", "col", "area", "base", "embed"}
)
FORBIDDEN = frozenset(
    {"script", "iframe", "object", "embed", "form", "base", "audio", "video", "image", "foreignobject"}
)
POLICY = "default-src 'none'"


class Page(HTMLParser):
    """A parsed page. Raises AssertionError where its tags are not balanced."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice: <{tag} {names}>"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1] == tag, f"</{tag}> closes {self._open[-3:]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        """What is to be read, in one line."""
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str) -> list[dict[str, str]]:
        """The attributes of every element of the kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    @property
    def svgs(self) -> list[ElementTree.Element]:
        """Every drawing, parsed as XML."""
        drawn = re.findall(r"<svg\b.*?</svg>", self.html, re.DOTALL)
        return [ElementTree.fromstring(one) for one in drawn]  # noqa: S314

    def csv(self, name: str) -> list[list[str]]:
        """The table behind the download link of that file name."""
        (link,) = (one for one in self.all("a") if one.get("download") == f"{name}.csv")
        content = b64decode(link["href"].removeprefix("data:text/csv;charset=utf-8;base64,")).decode()
        assert content.startswith("\ufeff")
        return list(csv.reader(io.StringIO(content[1:])))


def read_page(html: str) -> Page:
    """The page, after everything that holds for all of them was checked."""
    page = Page(html)
    _check_frame(page)
    _check_harmless(page)
    _check_references(page)
    _check_structure(page)
    return page


def _check_frame(page: Page) -> None:
    assert page.html.startswith("<!DOCTYPE html>")
    assert page.all("html") == [{"lang": "en"}]
    named = {one["name"]: one["content"] for one in page.all("meta") if "name" in one}
    assert named["viewport"] == "width=device-width, initial-scale=1"
    assert named["referrer"] == "no-referrer"
    (policy,) = (one["content"] for one in page.all("meta") if "http-equiv" in one)
    assert policy.startswith(POLICY)
    assert "script" not in policy
    assert len(page.all("title")) == len(page.all("h1")) == len(page.all("main")) == 1


def _check_harmless(page: Page) -> None:
    assert steering(page.html) == []
    for tag, attributes in page.elements:
        assert tag not in FORBIDDEN
        for name, value in attributes.items():
            assert not name.startswith("on"), f"a handler: {name}={value}"
            if name in ("href", "src", "srcset", "action", "poster", "xlink:href"):
                assert value.startswith(("#", "data:text/csv;", "data:,")), f"leads away: {value[:80]}"
            elif name != "xmlns":
                assert "url(" not in value or re.fullmatch(
                    r"[^()]*url\(#[\w-]+\)[^()]*(\(--\w+\)[^()]*)*", value
                )
    assert not re.search(r"@import|url\(", "".join(re.findall(r"<style>.*?</style>", page.html, re.DOTALL)))


def _check_references(page: Page) -> None:
    known = page.ids
    assert len(known) == len(set(known)), sorted(one for one in known if known.count(one) > 1)
    used = {one["href"] for _, one in page.elements if one.get("href", "").startswith("#")}
    used |= {f"#{one}" for one in re.findall(r"url\(#([^)]+)\)", page.html)}
    used |= {f"#{one['aria-labelledby']}" for _, one in page.elements if "aria-labelledby" in one}
    assert used <= {f"#{one}" for one in known}


def _check_structure(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(one.get("scope") in ("col", "row") for one in page.all("th"))
    assert len(page.all("figcaption")) == len(page.all("figure")) == len(page.all("svg")) == len(page.svgs)
    assert all(one["role"] == "img" and one["aria-label"].strip() for one in page.all("svg"))
    assert all(
        one["tabindex"] == "0" and one["aria-label"]
        for one in page.all("div")
        if "scroll" in one.get("class", "")
    )
    # A figure without its data is only a picture.
    for part in re.findall(r"<figure\b.*?</figure>", page.html, re.DOTALL):
        assert part.count(" download=") == 1

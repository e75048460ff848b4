"""The report of a run as one HTML file that needs nothing beside it: no network, no script.

What is said is that of the other forms; what is added are figures, each with its data behind a link.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources

from mmbu_async.report.html import scores, workings
from mmbu_async.report.html.markup import element, paragraph, text
from mmbu_async.report.model import ReportData
from mmbu_async.version import VERSION

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""What the browser is told to allow: the page's own style, and nothing from anywhere. No script at all."""


def to_html(report: ReportData) -> str:
    """The whole report."""
    ran = report.ran
    parts = (
        scores.families(report),
        workings.detection(report),
        scores.maps(report),
        scores.strata(report),
        workings.further(report),
        workings.lost(report),
        workings.replies(report),
        workings.cost(report),
        workings.provenance(report),
    )
    # Without a score every figure of every group would be 0 to 1.
    shown = parts if report.rows.scored else parts[5:]
    head = (
        paragraph(report.first_line, class_="state complete" if report.complete else "state incomplete"),
        element("h1", text(ran.benchmark), " · ", text(ran.model.model)),
        paragraph(f"Run {report.run}", class_="muted"),
        _official(report),
        scores.notes(report),
    )
    return page(
        f"{report.run}: {ran.benchmark}, {ran.model.model}",
        "\n".join(head),
        scores.headline(report),
        parts=shown,
    )


def _official(report: ReportData) -> str:
    if report.ran.official:
        return paragraph("Official settings.", class_="official")
    return paragraph(f"Unofficial: {'; '.join(report.ran.unofficial)}.", class_="official")


def page(title: str, head: str, opening: str, *, parts: Sequence[str]) -> str:
    """A whole document, of pieces that are HTML already. The contents are the headings of `parts`."""
    return "".join(
        [
            "<!DOCTYPE html>\n",
            '<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n',
            f"<title>{text(title)}</title>\n",
            # Or a browser would ask the server for one.
            '<link rel="icon" href="data:,">\n',
            f"<style>\n{_style()}</style>\n</head>\n<body>\n",
            f"<header>\n{head}\n</header>\n<main>\n{opening}",
            _contents(parts),
            *parts,
            "</main>\n",
            f"<footer>{paragraph(f'Made by mmbu-async {VERSION}.', class_='muted')}</footer>\n",
            "</body>\n</html>\n",
        ]
    )


_HEADING = re.compile(r'<section id="([^"]+)"[^>]*><h2 [^>]*>(.*?)</h2>')


def _contents(parts: Sequence[str]) -> str:
    links = list(_links(parts))
    if len(links) < 2:
        return ""
    return f'<nav aria-label="Contents"><ul>{"".join(links)}</ul></nav>\n'


def _links(parts: Sequence[str]) -> Iterator[str]:
    for part in parts:
        for identity, title in _HEADING.findall(part):
            yield f'<li><a href="#{identity}">{title}</a></li>'


@cache
def _style() -> str:
    return resources.files("mmbu_async.report.html").joinpath("style.css").read_text(encoding="utf-8")

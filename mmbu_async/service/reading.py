"""Reports, comparisons and exports, made in threads: the loop of the service must not wait for them.

Nothing that a client says becomes the name of a file: what has to be one lies in a temporary folder, under a
name of ours.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mmbu_async import api
from mmbu_async.report import to_json, to_markdown
from mmbu_async.report.compare_markdown import comparison_to_markdown
from mmbu_async.service.schemas import StoredRun
from mmbu_async.viewer.workers import Workers

READERS = 2
"""Reports and exports that are made at the same time; others wait."""
MEDIA_TYPES: Mapping[str, str] = {
    "json": "application/json",
    "html": "text/html",
    "md": "text/markdown",
}
EXPORT_TYPES: Mapping[str, tuple[str, str]] = {
    "jsonl": ("application/x-ndjson", "rows.jsonl"),
    "csv": ("text/csv", "rows.csv"),
    "parquet": ("application/vnd.apache.parquet", "rows.parquet"),
    "submission": ("application/json", "answers.submission.json"),
    "leaderboard": ("application/json", "figures.leaderboard.json"),
}
"""Media type, and the name under which the file lies and is offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A file that is there as long as it is read."""

    file: Path
    media_type: str
    size: int
    """Bytes."""
    name: str
    """What a browser should call it."""


class Reading:
    """Reads one store."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._workers = Workers(READERS, "reading")
        # Drawings of two pages at a time would share what matplotlib keeps for a process.
        self._drawing = Workers(1, "drawing")

    def close(self) -> None:
        """Does not wait for what is under way."""
        self._workers.close()
        self._drawing.close()

    async def report(self, run: str, form: str) -> str:
        """Of the run as it stands. Raises RunNotFoundError."""
        found = await self._workers.run(lambda: api.report(run, store=self._store))

        def html() -> str:
            # matplotlib takes half a second to import, which a service without readers should not pay.
            from mmbu_async.report.html import to_html

            return to_html(found)

        return await self._written(
            form, {"html": html, "md": lambda: to_markdown(found), "json": lambda: to_json(found)}
        )

    async def compare(self, runs: Sequence[str], form: str) -> str:
        """Raises ConfigError, DataError or RunNotFoundError where that cannot be."""
        found = await self._workers.run(lambda: api.compare(runs, store=self._store))

        def html() -> str:
            from mmbu_async.report.html import comparison_to_html

            return comparison_to_html(found)

        return await self._written(
            form, {"html": html, "md": lambda: comparison_to_markdown(found), "json": lambda: to_json(found)}
        )

    async def _written(self, form: str, forms: Mapping[str, Callable[[], str]]) -> str:
        return await (self._drawing if form == "html" else self._workers).run(forms[form])

    @asynccontextmanager
    async def export(self, run: str, form: str) -> AsyncIterator[Exported]:
        """While inside, the file is there."""
        media_type, name = EXPORT_TYPES[form]
        folder = await self._workers.run(lambda: tempfile.TemporaryDirectory(prefix="mmbu-export-"))
        try:
            file = Path(folder.name) / name

            def write() -> int:
                api.export(run, file, store=self._store)
                return file.stat().st_size

            size = await self._workers.run(write)
            yield Exported(file=file, media_type=media_type, size=size, name=f"{plain_name(run)}-{name}")
        finally:
            self._workers.post(folder.cleanup)

    async def chunk(self, file: Callable[[], bytes]) -> bytes:
        """A piece of a file."""
        return await self._workers.run(file)

    async def stored(self) -> list[StoredRun]:
        """All runs of the store."""
        return await self._workers.run(self._stored)

    def _stored(self) -> list[StoredRun]:
        if not self._store.exists():
            return []
        return [
            StoredRun(
                run=one.run.name,
                model=one.run.model,
                benchmark=one.run.benchmark,
                created_at=one.run.created_at,
                rows=one.counts.selected,
                scored=one.counts.scored,
                failed=one.counts.failed,
            )
            for one in api.status(store=self._store)
        ]


def plain_name(run: str) -> str:
    """Of a run, as a part of a file's name on any system."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", run)[:80].strip("._") or "run"

"""`mmbu view`: serve the row browser and show it."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import webbrowser
from pathlib import Path

from rich.console import Console

from mmbu_async import api
from mmbu_async.pipeline.looking import to_look_at
from mmbu_async.report import plain
from mmbu_async.viewer import serve


def view(runs: list[str], *, store: Path, port: int, show: bool, console: Console) -> None:
    """Serve until Ctrl-C. Raises RunNotFoundError, StoreError or ConfigError where that cannot begin."""

    def ready(address: str) -> None:
        named = ", ".join(map(plain.line, runs))
        console.print(
            f"Rows of {named}: {address}   (Ctrl-C ends)", markup=False, highlight=False, soft_wrap=True
        )
        if show and _has_screen():
            # A thread: some systems wait here for the browser that they start.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    # Data of the hub are looked for in this machine's cache: opening a page must not download a dataset.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    # On Windows Ctrl-C comes as an exception; elsewhere the server hears the signal.
    with contextlib.suppress(KeyboardInterrupt), to_look_at(store) as there:
        api.run_sync(lambda: serve(there, runs, port=port, ready=ready))


def _has_screen() -> bool:
    """Whether a browser would open in a window: without one, some open in the terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))

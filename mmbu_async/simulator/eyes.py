"""The simulator's eyes, and what they remember."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from mmbu_async.simulator.findings import Findings
from mmbu_async.simulator.pictures import Picture


class Eyes:
    """Looks at images, and remembers the newest of them by hash. Safe to use from threads."""

    def __init__(self, remember: int) -> None:
        self._remember = remember
        self._known: OrderedDict[str, Findings] = OrderedDict()
        self._lock = Lock()

    def recall(self, picture: Picture) -> Findings | None:
        with self._lock:
            return self._known.get(picture.sha256)

    def look(self, picture: Picture) -> Findings | None:
        """None when the image cannot be decoded or is too large to be."""
        known = self.recall(picture)
        if known is not None:
            return known
        # With the first image: what finds objects takes longer to import than all the rest of a simulator.
        from mmbu_async.simulator.vision import look

        findings = look(picture)
        if findings is not None:
            with self._lock:
                self._known[picture.sha256] = findings
                while len(self._known) > self._remember:
                    self._known.popitem(last=False)
        return findings

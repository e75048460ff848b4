"""The options of one question, ready to be found in replies by their texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mmbu_async.scoring.letters import letters
from mmbu_async.scoring.wording import EDGES, bare, denied, fold, mentions

_ARTICLE = re.compile(r"(?:the|an?) ")
_AND = re.compile(r"\W*+(?:[,/&+、]|\b(?:or|and)\b|[和或及])\W*+(?:(?:or|and)\b\W*+)?")
_SLACK = 80
"""Characters of a phrase beyond the longest option text that can still matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Letters and bare texts. A text that could not be told from a label, a single letter, is ''."""

    letters: str
    texts: tuple[str, ...]
    reach: int
    """Characters in which a label and any option text fit."""

    @classmethod
    def of(cls, options: Sequence[str]) -> Options:
        texts = (bare(text) for text in options)
        return cls(
            letters=letters(len(options)),
            texts=tuple("" if is_letter(text) else text for text in texts),
            reach=max(map(len, options)) + _SLACK,
        )

    def in_range(self, letter: str) -> str:
        """The letter in upper case, or '' where no option has it."""
        return letter.upper() if letter.upper() in self.letters else ""

    def with_text(self, text: str) -> set[str]:
        """Letters of the options whose text this is."""
        found = bare(text)
        return {letter for letter, one in self._named() if one == found}

    def follows(self, letter: str, text: str) -> bool:
        """Whether a text goes on with the text of this letter's own option: `. MRI` after `B`."""
        place = self.letters.find(letter.upper())
        return place >= 0 and bool(self.texts[place]) and _begins(_head(text), self.texts[place])

    def at_start(self, text: str) -> set[str]:
        """Letters of the option texts that a text begins with: one, or those of a list (`X-ray or CT`)."""
        rest = _head(text)
        found: set[str] = set()
        while True:
            article = _ARTICLE.match(rest)
            letters_here, end = self._longest_at_start(rest[article.end() :] if article else rest)
            found |= letters_here
            if not letters_here:
                return found
            rest = rest[end + (article.end() if article else 0) :]
            more = _AND.match(rest)
            if more is None:
                return found
            rest = rest[more.end() :]

    def mentioned(self, text: str) -> set[str]:
        """Letters of the options whose texts are mentioned and not ruled out, each where no longer one is."""
        folded = fold(text)
        spans = sorted(
            (start, -start - len(one), letter)
            for letter, one in self._named()
            for start in mentions(folded, one)
        )
        found: set[str] = set()
        last = (-1, 0)
        for start, minus_end, letter in spans:
            if -minus_end > last[1]:
                last = (start, -minus_end)
            if (start, -minus_end) == last and not denied(folded, start):
                found.add(letter)
        return found

    def _named(self) -> Iterator[tuple[str, str]]:
        return ((letter, text) for letter, text in zip(self.letters, self.texts, strict=True) if text)

    def _longest_at_start(self, rest: str) -> tuple[set[str], int]:
        here = [(len(one), letter) for letter, one in self._named() if _begins(rest, one)]
        longest = max(here, default=(0, ""))[0]
        return {letter for size, letter in here if size == longest}, longest


def is_letter(text: str) -> bool:
    """Whether a bare text is one Latin letter, and so reads as a label."""
    return len(text) == 1 and text.isascii() and text.isalpha()


def _head(text: str) -> str:
    return fold(text).lstrip(f"{EDGES}-")


def _begins(folded: str, wording: str) -> bool:
    return folded.startswith(wording) and 0 in mentions(folded[: len(wording) + 1], wording)

"""Answers that are scored against a truth by rule: the same text, the same number, yes or no, shared words.

For open and closed questions of PathVQA, VQA-RAD and SLAKE, and for benchmarks of one's own. What is compared
is the committed answer, `committed_text`: the inside of the last answer tag or field, else of the last box or
phrase (`Answer: …`), else the whole reply.

* Texts are the same whatever their case, width, white space, the marks around them, and an English article at
  the beginning. Inner articles and punctuation count. Between Chinese characters white space does not.
* Words for overlap are runs of letters or digits in lower case, a number with its decimals one word; English
  articles do not count. Every Chinese character is a word: Chinese has no blanks between words.
* Of nothing and nothing the overlap is 1; of nothing and something 0.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass

from mmbu_async.model import Answer
from mmbu_async.scoring.answers import UNTAGGED, without_thinking
from mmbu_async.scoring.commitments import FIELD, last_enclosed, stated
from mmbu_async.scoring.wording import IDEOGRAPHS, bare, fold, one_width

FIRST_WORD = "first word"
WORD = "word"
NONE = "none"

_LONGEST_PHRASE = 1000
"""Characters of an answer phrase that are looked at."""
_ARTICLE = re.compile(r"\A(?:an?|the) ")
_AROUND_IDEOGRAPHS = re.compile(rf" (?=[{IDEOGRAPHS}])|(?<=[{IDEOGRAPHS}]) ")
_WORD_OR_NUMBER = re.compile(rf"[{IDEOGRAPHS}]|\d++(?:[.,]\d++)*+|[^\W_{IDEOGRAPHS}]++")
_ARTICLES = frozenset({"a", "an", "the"})

_YES_OR_NO = r"(?:(?P<yes>yes|yeah|true|是的?|有|对|正确|存在)|(?P<no>no|nope|false|否|不|没|无|错))"
_NOT_CHINESE_YES = r"(?!是不是|有没有|是否|有无|对不对)"
_BEGINS = re.compile(rf"{_NOT_CHINESE_YES}{_YES_OR_NO}(?![a-z])(?P<hedge>(?: or|,? and| ?/) ?(?:yes|no)\b)?")
_ALONE = re.compile(r"(?<![\w-])(?:(?P<yes>yes)|(?P<no>no))(?=[\s]*(?:[.,;:!?)\"'*]|$))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Shares of words, 0 to 1."""

    precision: float
    """Of the answer's words, those that the truth has."""
    recall: float
    """Of the truth's words, those that the answer has."""

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def committed_text(reply: str) -> Answer:
    """The text to score, stripped; `how` is `tag`, `field` or `untagged`."""
    text = without_thinking(reply)
    wide = one_width(text)  # every character keeps its place
    if enclosed := last_enclosed(wide):
        said = text[enclosed.start : enclosed.end].strip()
        return Answer(text=_unescaped(said) if enclosed.how == FIELD else said, how=enclosed.how)
    for one in stated(wide, longest=_LONGEST_PHRASE):
        if bare(said := text[one.start : one.end]):
            return Answer(text=said.strip(" \t\r\n*_`\"'"), how=one.how)
    return Answer(text=text.strip(), how=UNTAGGED)


def _unescaped(said: str) -> str:
    """A JSON string without its escapes, `\\u80ba`; as it is where it was none."""
    try:
        return str(json.loads(f'"{said}"', strict=False)).strip()
    except ValueError:
        return said


def plain(text: str) -> str:
    """A text as it is compared."""
    return _ARTICLE.sub("", _AROUND_IDEOGRAPHS.sub("", bare(text)))


def exact_match(answer: str, truth: str) -> bool:
    """Whether two texts are the same. An empty answer matches nothing."""
    return bool(plain(answer)) and plain(answer) == plain(truth)


def read_yes_no(reply: str) -> Answer:
    """`yes`, `no` or '' from a reply in English or Chinese.

    The first word of the committed answer decides (`No fracture is seen` is no, `Yes and no` is nothing).
    Else a `yes` or `no` that a mark or the end follows, if there are not both: the `no` of `There is no
    fracture` is not one, since the question may have asked for the opposite.
    """
    said = committed_text(reply)
    text = bare(said.text)
    begins = _BEGINS.match(text)
    if begins:
        how = FIRST_WORD if said.how == UNTAGGED else said.how
        return Answer(text="" if begins["hedge"] else "yes" if begins["yes"] else "no", how=how)
    found = {alone[0] for alone in _ALONE.finditer(fold(said.text))}
    return Answer(text=found.pop(), how=WORD) if len(found) == 1 else Answer(text="", how=NONE)


def words(text: str) -> list[str]:
    """The words that count for overlap, in order."""
    return [word for word in _WORD_OR_NUMBER.findall(fold(text)) if word not in _ARTICLES]


def overlap(answer: str, truth: str) -> Overlap:
    """How many words two texts share, each as often as it stands in both."""
    given, true = Counter(words(answer)), Counter(words(truth))
    if not given and not true:
        return Overlap(precision=1.0, recall=1.0)
    shared = (given & true).total()
    return Overlap(
        precision=shared / given.total() if given else 0.0, recall=shared / true.total() if true else 0.0
    )

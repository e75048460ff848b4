"""Labels in a reply: where a letter stands for an option, and where it is only a letter."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mmbu_async.scoring.option_texts import Options, is_letter
from mmbu_async.scoring.wording import IDEOGRAPHS, bare, denied

_LATIN = rf"[^\W{IDEOGRAPHS}]"
"""A letter or digit that makes one word with a letter beside it; Chinese characters do not."""
_OPENING = (
    r"(?:\\(?:text|textbf|mathrm|mathbf|mathit|boxed|fbox)\s*+\{|\\[(\[]|[\s*_`\"'(\[{$<:]"
    r"|(?i:option|choice|answer|letter|label|most\ likely|likely|probably|clearly|thus|therefore)\b)*+"
)
_LABEL = re.compile(rf"{_OPENING}([A-Za-z])")
_GLUED = re.compile(rf"{_LATIN}|['-]{_LATIN}|\.(?![A-Z][a-z]){_LATIN}")
_NEXT_WORD = re.compile(r"[*_`]*+[ \t]++([A-Za-z]{2,}+|[A-Za-z]-[A-Za-z]++)")
_ABBREVIATION = re.compile(r"\.\s*+([a-z]++)")
_GOES_ON = re.compile(
    r"according|although|and|as|based|because|but|by|due|for|from|if|in|is|not|on|option|or|rather|since|so"
    r"|though|when|where|which|while|with"
)
"""Words that follow a label, and neither an article nor a pronoun nor an initial."""
_TERM_AFTER = re.compile(
    r"[ -](?:cells?|lymphocytes?|modes?|waves?|lines?|bands?|scans?|rays?)\b", re.IGNORECASE
)
_TERM_BEFORE = re.compile(
    r"\b(?:vitamin|hepatitis|influenza|types?|grade|group|stage|class|category|protein|factor|fig|figures?"
    r"|panels?|images?|picture|arrow|part|subfigure|patient|case|sample|point|slide|row|column)\W{1,3}$",
    re.IGNORECASE,
)
_LOOK_BACK = 24
_SECOND = re.compile(
    r"[\s)\]}*_`\"'.$]*+(?:[,/&+、和或及]|\b(?:or|and)\b)\s*+(?:(?:or|and)\b)?", re.IGNORECASE
)

_EMPHASIS = re.compile(
    r"\*\*([^*\n]{1,400}+)\*\*|__([^_\n]{1,400}+)__|\*([^*\n]{1,400}+)\*|`([^`\n]{1,400}+)`"
    rf"|<(?:b|strong|em|u)>([^<\n]{{1,400}}+)<|(?<!{_LATIN})[\"'$](\s*+[A-Za-z]\s*+)[\"'$]"
)
_BRACKETS = re.compile(rf"(?<!{_LATIN})[(\[{{](\s*+[A-Za-z]\s*+)[)\]}}]|(?<!\()(?<!{_LATIN})([A-Z])\)")
_HEAD = re.compile(r"[*_`\"'(\[{$]*+(?:(?i:option|choice)\s++)?[A-Za-z][*_`]*+[)\].:、]")
_BULLETS = re.compile(r"[ \t>#*_`~+•·(\[\d.)-]*+")
_LONGEST_BULLET = 16
_TEXT_AFTER = re.compile(r"[ \t:.)\]*_`-]*+(?!(?:or|and)\b)\w")
_ITEM = re.compile(
    r"[\s>#*_`~+•·-]*+(?P<number>\(?\d{1,2}[.)]\s*+)?[*_`]*+(?:(?i:option|choice)\s++)?[(\[]?+(?P<letter>[A-Za-z])"
    r"(?P<mark>[*_`]*+[)\].:、]++[*_`]*+|\s-\s|\s*+\Z)(?P<rest>.*)",
    re.DOTALL,
)
_NAMED_LINE = re.compile(r"(?:option|choice|answer) ([a-z])")
_CAPITAL = re.compile(rf"(?<!{_LATIN})(?<!['-])(?<!\w\.)[A-Z]")


def value(text: str, options: Options) -> str | None:
    """The letter that a committed text stands for; '' where it names a letter out of range, or two options;
    None where it names nothing."""
    whole = bare(text)
    if is_letter(whole):
        return options.in_range(whole)
    if found := options.with_text(text) or options.at_start(text):
        return found.pop() if len(found) == 1 else ""
    first = _label_at(text, 0, options)
    if first is None:
        return None
    letter, end = first
    joined = _SECOND.match(text, end)
    second = _label_at(text, joined.end(), options) if joined else None
    if second and second[0] != letter and options.in_range(second[0]):
        return ""
    return options.in_range(letter)


def in_emphasis(text: str, options: Options) -> set[str]:
    """Letters of labels and option texts in bold type, code or quotes."""
    return _set_off(_EMPHASIS, text, options)


def in_brackets(text: str, options: Options) -> set[str]:
    """Letters of the labels in brackets, or before a closing one."""
    return _set_off(_BRACKETS, text, options)


def _set_off(marks: re.Pattern[str], text: str, options: Options) -> set[str]:
    found: set[str] = set()
    for mark in marks.finditer(text):
        if not _heads_item(text, mark.start(), mark.end()) and not denied(text, mark.start()):
            found |= _named_alone(mark[mark.lastindex or 0], options)
    return found


def in_lists(lines: Iterable[str], options: Options) -> set[str]:
    """Letters that begin a line with text after them, or stand behind its number."""
    found: set[str] = set()
    for line in lines:
        item = _ITEM.match(line)
        if item is None:
            continue
        letter, mark, rest = item["letter"], item["mark"], item["rest"]
        if ":" in mark and is_letter(bare(rest)):
            found.add(options.in_range(bare(rest)))  # the answer to a `Q:`
        elif not bare(rest):
            found.add(options.in_range(letter) if item["number"] else "")
        elif options.follows(letter, rest) or not (_is_abbreviation(mark + rest) or _SECOND.match(rest)):
            found.add(options.in_range(letter))
    return found - {""}


def on_lines(lines: Iterable[str], options: Options) -> set[str]:
    """Letters of the lines that are a label and nothing else."""
    found: set[str] = set()
    for line in lines:
        whole = bare(line.lstrip("-+•· \t"))
        named = _NAMED_LINE.fullmatch(whole)
        letter = named[1] if named else whole
        if is_letter(letter):
            found.add(options.in_range(letter))
    return found - {""}


def in_prose(text: str, options: Options) -> set[str]:
    """Capital letters that stand alone, as a label would."""
    found: set[str] = set()
    for capital in _CAPITAL.finditer(text):
        start = capital.start()
        if capital[0] in found or not options.in_range(capital[0]):
            continue
        label = _label_at(text, start, options)
        if label is None or label[1] != capital.end():  # `Answer` is a word that may stand before a label
            continue
        if not denied(text, start) and not _TERM_BEFORE.search(text[max(0, start - _LOOK_BACK) : start]):
            found.add(capital[0])
    return found


def _heads_item(text: str, start: int, end: int) -> bool:
    """Whether a label, with the mark that follows one in a list, begins a line, and text comes after it."""
    line = text[max(0, start - _LONGEST_BULLET) : start].rpartition("\n")
    begins = bool(line[1]) or start <= _LONGEST_BULLET
    if not begins or not _BULLETS.fullmatch(line[2]):
        return False
    return bool(_HEAD.match(text, start)) and bool(_TEXT_AFTER.match(text, end))


def _named_alone(content: str, options: Options) -> set[str]:
    whole = bare(content)
    if is_letter(whole):
        return {options.in_range(whole)} - {""}
    if same := options.with_text(content):
        return same
    label = _label_at(content, 0, options)
    if label is None or content[label[1] : label[1] + 1] not in {")", ".", ":", "]"}:
        return set()
    return {options.in_range(label[0])} - {""}


def _label_at(text: str, start: int, options: Options) -> tuple[str, int] | None:
    """A label that a text has at a place, behind marks and words such as `option`, and where it ends."""
    label = _LABEL.match(text, start)
    if label is None:
        return None
    letter, end = label[1], label.end()
    after = text[end : end + options.reach]
    if not options.follows(letter, after):
        if _GLUED.match(after) or _TERM_AFTER.match(after) or _is_abbreviation(after):
            return None
        word = _NEXT_WORD.match(after)
        if word and (letter in "AI" or letter.islower()) and not _GOES_ON.fullmatch(word[1].casefold()):
            return None
    return letter.upper(), end


def _is_abbreviation(after: str) -> bool:
    """Whether a full stop and a word in lower case follow, as in `E. coli`."""
    word = _ABBREVIATION.match(after)
    return word is not None and not _GOES_ON.fullmatch(word[1])

"""The option that a reply to a closed question commits to: MMBU's deterministic ladder, without a judge.

Think blocks go first. Then each rung is tried in turn, from the top; `how` names the one that decided. With
the options X-ray, MRI, CT and Ultrasound:

    tag, field     the last answer tag or JSON answer field, whatever it holds
                   <answer>B</answer>          {"answer": "MRI"}
    tag, field     the last box or phrase that names an option
                   \\boxed{B}                   The final answer is (B).
    mark           a label or an option's text, set off from the text around it
                   **B**    (B)    B)          It shows **MRI**
    list           a label that begins a line, with text after it
                   B. MRI                      1. (B) It is bright
    label          a line that is a label, else a capital letter of its own
                   b                           I think it is B
    option text    a line that is an option's text, else the mention of one
                   mri                         This is an MRI of a knee
    none           nothing of all this
                   It is a PET scan

What decides where several things could:

* Of enclosed commitments, and below them of phrases, the last one counts. An enclosed one is final: if it is
  empty, or names nothing on offer, or two options, the row is wrong and nothing else in the reply is looked
  at. So does a phrase that names a letter out of range or two options (`A or B`). The text is '' then, `how`
  names the rung, and unless the commitment is empty, `outside` tells a wrong answer from a missing one.
* On the rungs below, two different options are no answer there, and the next rung is asked. Emphasis comes
  before brackets. Where one label begins a line, and brackets elsewhere hold another, neither is an answer;
  below a list of several labels, brackets choose among these. Two different capital letters leave only a line
  that is an option's text.
* What is only ruled out (`not B`, `rather than CT`) is not named. Letters in words and terms are no labels:
  the article A, the pronoun I, `E. coli`, `B-cell`, `vitamin D`, `Figure B`.
* Option texts agree whatever their case, width, white space and the marks around them. A text within a longer
  option that stands at the same place is not mentioned itself; two options with one text are two.
* A label beats the option text beside it: `B) X-ray` is B.

Each rung passes over the reply a fixed number of times, so hostile replies take no longer than others.
"""

from __future__ import annotations

from collections.abc import Sequence

from mmbu_async.model import Answer
from mmbu_async.scoring.answers import without_thinking
from mmbu_async.scoring.commitments import FIELD, TAG, last_enclosed, spoken
from mmbu_async.scoring.option_labels import in_brackets, in_emphasis, in_lists, in_prose, on_lines, value
from mmbu_async.scoring.option_texts import Options
from mmbu_async.scoring.wording import bare, denied, one_width

__all__ = ["FIELD", "LABEL", "LIST", "MARK", "NONE", "OPTION_TEXT", "TAG", "read_choice"]

MARK = "mark"
LIST = "list"
LABEL = "label"
OPTION_TEXT = "option text"
NONE = "none"


def read_choice(reply: str, options: Sequence[str]) -> Answer:
    """The letter of the option that the reply commits to, or '', and the rung that decided.

    `options` are the texts without their letters, 2 to 26 of them; ValueError otherwise.
    """
    known = Options.of(options)
    text = one_width(without_thinking(reply))
    enclosed = last_enclosed(text)
    if enclosed is None:
        return _read(text, known)
    inside = text[enclosed.start : enclosed.end]
    letter = _read_enclosed(inside, known)
    return Answer(text=letter, how=enclosed.how, outside=not letter and bool(bare(inside)))


def _read_enclosed(text: str, options: Options) -> str:
    """What the inside of a tag or field names; a tag may hold a JSON object."""
    inner = last_enclosed(text)
    if inner is not None:
        text = text[inner.start : inner.end]
    letter = value(text, options)
    return _read(text, options).text if letter is None else letter


def _read(text: str, options: Options) -> Answer:
    for one in spoken(text, longest=options.reach):
        letter = value(text[one.start : one.end], options)
        if letter is not None and not denied(text, one.start):
            return Answer(text=letter, how=one.how, outside=not letter)
    if len(found := in_emphasis(text, options)) == 1:
        return Answer(text=found.pop(), how=MARK)
    lines = [line for line in text.split("\n") if line.strip()]
    bracketed, heads = in_brackets(text, options), in_lists(lines, options)
    found = bracketed & heads if len(heads) > 1 else bracketed | heads
    if len(found) == 1:
        return Answer(text=found.pop(), how=MARK if bracketed else LIST)
    if len(found := on_lines(lines, options)) == 1:
        return Answer(text=found.pop(), how=LABEL)
    capitals = in_prose(text, options)
    if len(capitals) == 1:
        return Answer(text=capitals.pop(), how=LABEL)
    texts = set().union(*(options.with_text(line) for line in lines))
    if len(texts) != 1:
        texts = set() if capitals else options.mentioned(text)
    return Answer(text=texts.pop(), how=OPTION_TEXT) if len(texts) == 1 else Answer(text="", how=NONE)

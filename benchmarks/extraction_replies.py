"""Replies to multiple-choice questions, drawn with a seed: common shapes with noise around, and scraps."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

SEED = 2026

OPTION_SETS = (
    ("X-ray", "Magnetic resonance imaging", "Computed tomography", "Ultrasound"),
    ("adenocarcinoma", "squamous cell carcinoma", "lymphoma", "no malignancy"),
    ("left lung", "lung", "right lower lobe", "pleura"),
    ("S. aureus", "E. coli", "T. cruzi", "C. albicans"),
)
BEFORE = ("", "The image shows a section. ", "Let me think. It is bright in T2.\n\n", "Hard to tell!\n")
AFTER = ("", "\n", " I am confident.", "\nThat follows from the image.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A way to answer. L, T: letter and text of the option that is meant; X, Y: of another one."""

    name: str
    template: str
    why: str = ""
    """Why the readers differ on it."""
    answers: bool = True
    """False: it names no one option, so that any letter read from it is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    text: str
    shape: Shape
    options: tuple[str, ...]
    letter: str
    """The letter that is meant; '' where none is."""


_CASE = "Lower-case labels are none to both references; PMC-VQA then takes the last capital of the reply."
_BLANKS = "MMMU wants a blank on either side; PMC-VQA, without a marker, takes the last capital of the reply."
_TEXTS = "PMC-VQA knows letters only. MMMU looks for texts in replies of more than five words."
_NEGATION = "MMMU takes the text that is mentioned last, denied or not; PMC-VQA the last capital."
_TAG = "Neither reference knows tags, fields or boxes; the letter in one has no blanks around it."

SHAPES = (
    Shape(name="ANSWER: B", template="ANSWER: {L}", why="MMMU: a line break after the letter is no blank."),
    Shape(name="ANSWER: b", template="ANSWER: {l}", why=_CASE),
    Shape(name="**ANSWER: B**", template="**ANSWER: {L}**", why=_BLANKS),
    Shape(name="ANSWER: (B)", template="ANSWER: ({L})"),
    Shape(name="ANSWER: $B$", template="ANSWER: ${L}$", why=_BLANKS),
    Shape(name="ANSWER:B", template="ANSWER:{L}", why=_BLANKS),
    Shape(name="ANSWER：B (full width)", template="ANSWER：{L}", why=_BLANKS),
    Shape(
        name="ANSWER: B) text",
        template="ANSWER: {L}) {T}",
        why=_BLANKS + " The text then tells, in a long reply.",
    ),
    Shape(name="ANSWER: text", template="ANSWER: {T}", why=_TEXTS),
    Shape(
        name="ANSWER: B, not C",
        template="ANSWER: {L}, not {X}",
        why="MMMU takes the last letter between blanks.",
    ),
    Shape(
        name="ANSWER: B, next line on C",
        template="ANSWER: {L}\n{X} is wrong because it is Dark",
        why="MMMU counts a letter only between blanks, and a line break is none.",
    ),
    Shape(
        name="ANSWER: B, format echoed", template="ANSWER: {L}\nThe format is ANSWER: [LETTER]", why=_BLANKS
    ),
    Shape(name="<answer>B</answer>", template="<answer>{L}</answer>", why=_TAG),
    Shape(name='{"answer": "B"}', template='{{"answer": "{L}"}}', why=_TAG),
    Shape(name="\\boxed{B}", template="\\boxed{{{L}}}", why=_TAG),
    Shape(name="B", template="{L}", why="A sentence or a line break beside it: see `ANSWER:B`."),
    Shape(name="b", template="{l}", why=_CASE + " The ladder takes it on a line of its own."),
    Shape(name="(B)", template="({L})", why="PMC-VQA takes the last capital, here of the sentence after it."),
    Shape(name="(b)", template="({l})", why=_CASE),
    Shape(name="B)", template="{L})", why=_BLANKS),
    Shape(name="**B**", template="**{L}**", why=_BLANKS),
    Shape(name="B. text", template="{L}. {T}", why=_BLANKS + " The text then tells, in a long reply."),
    Shape(name="The answer is B.", template="The answer is {L}.", why=_BLANKS),
    Shape(
        name="The answer is B. A …",
        template="The answer is {L}. A chest film shows this",
        why="`B.` is not between blanks, so the article A is the only letter; PMC-VQA: the last capital.",
    ),
    Shape(
        name="The answer is (B), not (C)",
        template="The answer is ({L}), not ({X})",
        why="The last one wins in both.",
    ),
    Shape(name="I think it is B", template="I think it is {L}", why=_BLANKS),
    Shape(name="text", template="{T}", why=_TEXTS),
    Shape(name="text in a sentence", template="The picture in question clearly shows {T} here", why=_TEXTS),
    Shape(name="not other but text", template="It is certainly not {Y} but {T} in this image", why=_NEGATION),
    Shape(name="text rather than other", template="It must surely be {T} rather than {Y}", why=_NEGATION),
    Shape(
        name="options listed, B below",
        template="A) first\nB) second\nC) third\nD) fourth\n\n{L}",
        why="MMMU: no letter is between blanks. The ladder takes it on a line of its own.",
    ),
    Shape(
        name="options listed, **B**",
        template="A) first\nB) second\nC) third\nD) fourth\n\nTherefore **{L}**",
        why="MMMU: no letter is between blanks.",
    ),
    Shape(
        name="<think>C</think> B",
        template="<think>It may be {X} </think>{L}",
        why="MMMU does not know think blocks, and finds the letter in one between blanks.",
    ),
    Shape(
        name="答案：B",
        template="答案：{L}",
        why="No blanks around it; under the English prompt no marker either.",
    ),
    Shape(name="ANSWER: A or B", template="ANSWER: {L} or {X}", answers=False, why="MMMU takes the last."),
    Shape(name="(A) and (B)", template="({L}) and ({X})", answers=False, why="The last one wins in both."),
    Shape(
        name="cut off",
        template="Looking at the image, taken as a CT of the Abdomen, one",
        answers=False,
        why="PMC-VQA takes the last capital, MMMU draws.",
    ),
    Shape(
        name="refusal",
        template="I can not give medical advice. Ask a Doctor.",
        answers=False,
        why="PMC-VQA takes the last capital, MMMU draws.",
    ),
)

_SCRAPS = (
    *(
        "ANSWER:",
        "answer: ",
        "Answer :",
        "**ANSWER: ",
        "ANSWER：",
        "答案：",
        "答案:",
        "**",
        "*",
        "[LETTER]",
        "(",
        ")",
    ),
    *(
        "[",
        "]",
        "（",
        "）",
        "$",
        "\\(",
        "\\boxed{",
        "\\text{",
        "}",
        "A",
        "B",
        "C",
        "D",
        "E",
        "(A)",
        "(B)",
        "(C)",
    ),
    *(
        " A ",
        " B ",
        " C ",
        "B.",
        "b",
        "AB",
        " and ",
        " or ",
        "and",
        "or",
        ",",
        "，",
        "、",
        "/",
        " ",
        "\n",
        "\t",
        ".",
    ),
    *(
        "-",
        "0",
        "7",
        "because it is ",
        "Dog",
        " not ",
        "is ",
        "so ",
        "final ",
        "answer ",
        "result ",
        "therefore ",
        "=",
    ),
    *(
        "1,234",
        "3.14",
        "-5",
        "1e-3",
        "12.",
        ".5",
        "1,2",
        "50%",
        "$12",
        "x",
        "12abc",
        "1.2.3",
        "could be ",
        "thus ",
    ),
    *(
        "X-ray",
        "ultrasound",
        "lung",
        "left lung",
        "computed tomography",
        "a few more words ",
        ":",
        "'",
        ";",
        "1",
    ),
)


def shaped(each: int) -> Iterator[Reply]:
    """`each` replies of every shape."""
    rng = random.Random(SEED)
    for shape in SHAPES:
        for number in range(each):
            options = OPTION_SETS[number % len(OPTION_SETS)]
            place, other = rng.sample(range(len(options)), 2)
            letter, another = "ABCD"[place], "ABCD"[other]
            core = shape.template.format(
                L=letter, l=letter.lower(), T=options[place], X=another, Y=options[other]
            )
            text = rng.choice(BEFORE) + core + rng.choice(AFTER)
            yield Reply(text=text, shape=shape, options=options, letter=letter if shape.answers else "")


def scraps(count: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Replies pasted together from scraps, each with the options of its question."""
    rng = random.Random(SEED + 1)
    for _ in range(count):
        pieces = rng.choices(_SCRAPS, k=rng.randint(1, 12))
        yield "".join(pieces), rng.choice(OPTION_SETS)

"""From what was seen to what is said, guided by the words of the question."""

from __future__ import annotations

import json
import re

from mmbu_async.simulator.findings import Cues, Findings

_CANDIDATE = re.compile(
    r"^([A-Z])\) \[(\d+(?:\.\d+)?), (\d+(?:\.\d+)?), (\d+(?:\.\d+)?), (\d+(?:\.\d+)?)\]$", re.MULTILINE
)
_COUNT = re.compile(r"\b(how many|count|number of)\b", re.IGNORECASE)


def reply(text: str, findings: Findings | None) -> str:
    """Rationale and tagged answer, as the system message asks for them."""
    if findings is None:
        return "No image can be seen, so this is a guess.\n<answer>unknown</answer>"
    question, _, suffix = text.rpartition("Output format:")
    question = question or text
    found = len(findings.objects.boxes)
    if "bounding box" in suffix:
        boxes = _detect(findings)
        seen = f"Thresholding shows {found} separate objects; the clearest are reported."
        return f"{seen}\n<answer>{boxes}</answer>"
    if "run lengths" in suffix:
        return f"Thresholding shows {found} separate objects.\n<answer>{_outline(findings)}</answer>"
    if candidates := _CANDIDATE.findall(question):
        letter = _pick(candidates, findings)
        return f"Of the candidates this one fits best what stands out.\n<answer>{letter}</answer>"
    if _COUNT.search(question):
        return f"Thresholding and splitting of touching objects shows {found}.\n<answer>{found}</answer>"
    label, reason = _classify(question.casefold(), findings)
    return f"{reason}\n<answer>{label}</answer>"


def _detect(findings: Findings) -> str:
    """The one box that looks most like a single whole object."""
    objects = findings.objects
    if not objects.boxes:
        return "[]"
    areas = sorted(width * height for _, _, width, height in objects.boxes)
    usual = areas[len(areas) // 2]

    def merit(index: int) -> float:
        _, _, width, height = objects.boxes[index]
        likeness = min(usual, width * height) / max(usual, width * height)
        return (2.0 if objects.whole[index] else 0.0) + objects.roundness[index] + 0.5 * likeness

    best = max(range(len(objects.boxes)), key=merit)
    return str(list(objects.boxes[best]))


def _outline(findings: Findings) -> str:
    """COCO run lengths, down the columns, of the largest object as its box: a crude mask, but one."""
    height = findings.height
    counts = [height * findings.width]
    if findings.objects.boxes:
        x, y, wide, high = max(findings.objects.boxes, key=lambda box: box[2] * box[3])
        gap = height - high
        counts = [x * height + y, *[high, gap] * (wide - 1), high]
        counts.append(height * findings.width - sum(counts))
    return json.dumps({"size": [height, findings.width], "counts": counts})


def _pick(candidates: list[tuple[str, ...]], findings: Findings) -> str:
    """The letter of the candidate that lies most like one of the objects that were seen."""

    def likeness(candidate: tuple[str, ...]) -> float:
        box = tuple(float(number) for number in candidate[1:])
        return max((_iou(box, seen) for seen in findings.objects.boxes), default=0.0)

    return max(candidates, key=likeness)[0]


def _iou(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    wide = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    high = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    inside = max(wide, 0.0) * max(high, 0.0)
    return inside / max(one[2] * one[3] + other[2] * other[3] - inside, 1e-9)


def _classify(question: str, findings: Findings) -> tuple[str, str]:
    if findings.marked:
        return _region(
            findings
        ), f"{findings.marked_object:.0%} of the marked region stands out from the ground."
    if "stain" in question:
        return _stain(findings.cues), "The colours speak for this stain."
    if "single cell" in question:
        single = len(findings.objects.boxes) <= 3
        return (
            "single cell" if single else "tissue section",
            f"{len(findings.objects.boxes)} objects are in the image.",
        )
    return _modality(findings), "Colour, ground and texture speak for this technique."


def _region(findings: Findings) -> str:
    """A box always holds some ground beside a roundish object; a mask that holds much covers both."""
    if findings.marked == "mask" and 0.2 < findings.marked_object < 0.8:
        return "cell nucleus, empty background"
    return "cell nucleus" if findings.marked_object >= 0.4 else "empty background"


def _stain(cues: Cues) -> str:
    if cues.grey:
        return "DAPI"
    return "immunohistochemistry with DAB" if cues.brown > 0.08 else "hematoxylin and eosin"


def _modality(findings: Findings) -> str:
    cues = findings.cues
    if not cues.grey:
        return "colour fundus photography" if cues.fundus else "light microscopy"
    if len(findings.objects.boxes) >= 6 and cues.symmetry < 0.4:
        return "fluorescence microscopy"
    if cues.dark < 0.02 and cues.symmetry > 0.5:
        return "X-ray radiography"
    return "computed tomography" if cues.peak > 0.3 else "magnetic resonance imaging"

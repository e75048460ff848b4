"""From what was seen to what is said, guided by the words of the question."""

from __future__ import annotations

import re

from mmbu_async.simulator.vision import Cues, Findings

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
        return (2.0 if objects.whole[index] else 0.0) + objects.solidity[index] + 0.5 * likeness

    best = max(range(len(objects.boxes)), key=merit)
    return str(list(objects.boxes[best]))


def _classify(question: str, findings: Findings) -> tuple[str, str]:
    cues = findings.cues
    if findings.marked:
        inside = findings.marked_object >= 0.4
        label = "cell nucleus" if inside else "empty background"
        return label, f"{findings.marked_object:.0%} of the marked region is brighter than the ground."
    if "stain" in question:
        return _stain(cues), "The colours speak for this stain."
    if "modality" in question or "technique" in question or "imaging" in question:
        return _modality(findings), "Colour, ground and texture speak for this technique."
    if "single cell" in question:
        return _specimen(findings), f"{len(findings.objects.boxes)} objects are in the image."
    return _modality(findings), "The question names no feature that is measured; the technique is reported."


def _stain(cues: Cues) -> str:
    if cues.grey:
        return "DAPI"
    if cues.brown > 0.08:
        return "immunohistochemistry with DAB"
    return "hematoxylin and eosin"


def _specimen(findings: Findings) -> str:
    return "single cell" if len(findings.objects.boxes) <= 3 else "tissue section"


def _modality(findings: Findings) -> str:
    cues = findings.cues
    if not cues.grey:
        if cues.corners_dark and cues.red > cues.blue + 0.1:
            return "colour fundus photography"
        return "light microscopy"
    if cues.peak > 0.3 and cues.dark < 0.5:
        return "computed tomography"
    return "magnetic resonance imaging"

"""What the simulator says: by looking or by judging, then bent by the fault that the request met."""

from __future__ import annotations

import re
from dataclasses import replace

from mmbu_async.model import Finish, Usage
from mmbu_async.simulator import answers
from mmbu_async.simulator.faults import Fault
from mmbu_async.simulator.findings import Findings
from mmbu_async.simulator.judge import judge
from mmbu_async.simulator.wire import ChatRequest, Reply, tokens

_DECOY = "The first impression would be <answer>decoy</answer>, but a second look is needed."
_REFUSAL = "I'm sorry, but I can't help with interpreting this image."
_VERDICT = re.compile(r"(?<=\[RESULT\] )[01]$")
_TAGS = re.compile(r"</?\s*answer\s*>", re.IGNORECASE)


def speak(request: ChatRequest, findings: Findings | None, length: int | None = None) -> str:
    """The undisturbed reply text; to a question of so many tokens where a length is given."""
    if request.role == "judge":
        return judge(request.text)
    if length is not None:
        return "tok " * length
    return answers.reply(request.text, findings)


def reply(text: str, request: ChatRequest, fault: Fault | None) -> Reply:
    """The reply as the fault bends it, cut at the token limit, with its usage."""
    bent = _bend(text, fault)
    thought = tokens(bent.reasoning)
    spoken = tokens(bent.text or "") + tokens(bent.refusal)
    limit = request.max_tokens
    if limit is not None and thought + spoken > limit and bent.text is not None:
        left = max(0, limit - thought)
        bent = replace(bent, text=bent.text[: left * 4], finish=Finish.LENGTH)
        spoken = left
    usage = Usage(
        input_tokens=request.input_tokens,
        output_tokens=thought + spoken,
        reasoning_tokens=thought,
        reported=fault is not Fault.NO_USAGE,
    )
    return replace(bent, usage=usage)


def _bend(text: str, fault: Fault | None) -> Reply:
    if fault is None:
        return Reply(text=text)
    bent = {
        Fault.EMPTY_CHOICES: Reply(text=None, empty=True),
        Fault.TRUNCATED: Reply(text=text[: len(text) // 2], finish=Finish.LENGTH),
        Fault.UNTAGGED: Reply(text=_TAGS.sub("", text)),
        Fault.EMPTY_TEXT: Reply(text=""),
        Fault.REFUSAL: Reply(text=None, refusal=_REFUSAL, finish=Finish.REFUSAL),
        Fault.CONTENT_FILTER: Reply(text=text[:12], filtered=True, finish=Finish.REFUSAL),
        Fault.THINK: Reply(text=f"<think>\n{_DECOY}\n</think>\n\n{text}"),
        Fault.REASONING_FIELD: Reply(text=text, reasoning=_DECOY),
        Fault.NULL_CONTENT: Reply(text=None, reasoning=_DECOY),
        Fault.THINKING_SPENT: Reply(text=None, reasoning=_DECOY, finish=Finish.LENGTH),
        Fault.NO_VERDICT: Reply(text=re.sub(r"\s*\[RESULT\]\s*[01]\s*$", "", text)),
        Fault.OTHER_VERDICT: Reply(text=_VERDICT.sub(lambda found: str(1 - int(found[0])), text)),
    }
    return bent.get(fault, Reply(text=text))

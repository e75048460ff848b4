"""The readers of other harnesses, run in an environment that has them: JSON lines in, JSON lines out.

    python peer_extraction.py evalscope|lmms-eval

Only the files with the readers are loaded, with stand-ins for what they import and do not use to read: the
harnesses themselves need gigabytes of packages.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

DRAWN = "drawn"

Reader = Callable[[dict[str, Any]], Any]


def evalscope() -> dict[str, Reader]:
    stand_in("evalscope.api.evaluator", Choices=Options, Target=object, TaskState=object)
    module = load("evalscope", "utils/multi_choices.py")

    def read(parse: Callable[..., set[str]], **more: bool) -> Reader:
        def answer(task: dict[str, Any]) -> str:
            state = SimpleNamespace(choices=task["options"], output=SimpleNamespace(completion=task["reply"]))
            return "".join(sorted(parse(state, **more)))

        return answer

    return {
        "single": read(module.parse_answers),
        "several": read(module.parse_answers, multiple_correct=True),
        "chinese": read(module.parse_answers_zh),
        "prompt": lambda task: module.prompt(
            task["reply"], task["options"], module.MultipleChoiceTemplate.SINGLE_ANSWER
        ),
    }


def lmms_eval() -> dict[str, Reader]:
    choices = load("lmms_eval", "tasks/_task_utils/mmmu_mcq_utils.py")
    choices.random = SimpleNamespace(choice=lambda _: DRAWN)
    sys.modules["lmms_eval.tasks._task_utils.mmmu_mcq_utils"] = choices
    stand_in("yaml", safe_load=lambda _: {})
    module = load("lmms_eval", "tasks/mmmu_pro/utils.py")

    def choice(task: dict[str, Any]) -> str:
        texts, letters = choices.get_multi_choice_info(task["options"])
        return str(choices.parse_mmmu_multi_choice_response(task["reply"], letters, texts))

    return {
        "choice": choice,
        "open": lambda task: sorted(map(repr, module.parse_open_response(task["reply"]))),
        "right": lambda task: module.eval_open(task["gold"], module.parse_open_response(task["reply"])),
    }


class Options(list[Any]):
    """What evalscope's prompt needs of its own list of options: `value` of each."""

    def __getitem__(self, place: Any) -> Any:
        return SimpleNamespace(value=super().__getitem__(place))


def stand_in(name: str, **members: Any) -> None:
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:end]), ModuleType(".".join(parts[:end])))
    vars(sys.modules[name]).update(members)


def load(package: str, file: str) -> Any:
    found = next(place for place in map(Path, sys.path) if (place / package / file).is_file())
    spec = importlib.util.spec_from_file_location(f"{package}_{Path(file).stem}", found / package / file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} of {package} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    readers = {"evalscope": evalscope, "lmms-eval": lmms_eval}[sys.argv[1]]()
    for line in sys.stdin:
        task = json.loads(line)
        print(json.dumps(readers[task["reader"]](task)))


if __name__ == "__main__":
    main()

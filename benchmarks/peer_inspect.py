"""One evaluation by inspect_ai, run in an environment that has it. Its public API, its defaults.

    python peer_inspect.py FOLDER URL CONCURRENCY OUTPUT

FOLDER holds rows.json: a list of question, choices, target and the path of an image.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, get_model
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice


def main() -> None:
    folder, url, concurrency, output = sys.argv[1:]
    rows = json.loads((Path(folder) / "rows.json").read_text("utf-8"))
    samples = [
        Sample(
            input=[
                ChatMessageUser(content=[ContentText(text=row["question"]), ContentImage(image=row["image"])])
            ],
            choices=row["choices"],
            target=row["target"],
        )
        for row in rows
    ]
    eval(
        Task(dataset=MemoryDataset(samples), solver=multiple_choice(), scorer=choice()),
        model=get_model("openai-api/bench/bare", base_url=url, api_key="none"),
        max_connections=int(concurrency),
        display="none",
        log_dir=output,
    )


if __name__ == "__main__":
    main()

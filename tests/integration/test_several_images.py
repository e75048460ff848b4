"""Requests with several images, as they arrive: text and images in the order in which the row names them."""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from aiohttp import web
from PIL import Image

from mmbu_async import api
from mmbu_async.config import JudgeConfig, RunConfig
from tests.whole_run import ENDPOINTS


@pytest.fixture(autouse=True)
def _keys(keys: None) -> None:
    """Any key will do."""


def picture(name: str, edge: int) -> dict[str, Any]:
    file = io.BytesIO()
    Image.new("RGB", (edge, edge), (edge, 0, 0)).save(file, "PNG")
    return {"bytes": file.getvalue(), "path": f"{name}.png"}


PICTURES = {f"image_{number}": picture(f"image_{number}", 16 + number) for number in range(1, 8)}
NAMES = {found["bytes"]: name for name, found in PICTURES.items()}
ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "in question and options": (
        {
            "question": "See <image 1> beside <image 2>.",
            "options": "['<image 3>', 'no <image 4> here', 'neither']",
            "images": (1, 2, 3, 4),
        },
        "See [1] beside [2].\n(A) [3]\n(B) no [4] here\n(C) neither\n\n"
        "Answer with the option's letter from the given choices directly.",
    ),
    "one image named twice": (
        {"question": "<image 1> or <image 1>?", "options": "['a', '<image 1>']", "images": (1,)},
        "[1] or [1]?\n(A) a\n(B) [1]\n\nAnswer with the option's letter from the given choices directly.",
    ),
    "images without a placeholder go first": (
        {"question": "Compare with <image 3>.", "options": "['a', 'b']", "images": (1, 3, 7)},
        "[1][7]Compare with [3].\n(A) a\n(B) b\n\n"
        "Answer with the option's letter from the given choices directly.",
    ),
    "all seven, out of order": (
        {
            "question": "".join(f"<image {number}>" for number in (7, 6, 5, 4, 3, 2, 1)),
            "options": "[]",
            "answer": "5",
            "question_type": "open",
            "images": (1, 2, 3, 4, 5, 6, 7),
        },
        "[7][6][5][4][3][2][1]\nAnswer the question using a single word or phrase.",
    ),
    "entities, line ends and braces stay": (
        {
            "question": "p &lt; 0.05 &amp; {x}\nin <image 1>",
            "options": repr(["a &gt; b", "line one\nline two", "<image 9x>"]),
            "images": (1,),
        },
        "p &lt; 0.05 &amp; {x}\nin [1]\n(A) a &gt; b\n(B) line one\nline two\n(C) <image 9x>\n\n"
        "Answer with the option's letter from the given choices directly.",
    ),
}


def rows() -> list[dict[str, Any]]:
    return [
        {
            "id": f"validation_Art_{number}",
            "question": row["question"],
            "options": row["options"],
            "explanation": "",
            **{f"image_{n}": PICTURES[f"image_{n}"] if n in row["images"] else None for n in range(1, 8)},
            "img_type": "['Diagrams']",
            "answer": row.get("answer", "A"),
            "topic_difficulty": "Easy",
            "question_type": row.get("question_type", "multiple-choice"),
            "subfield": "Drawing",
        }
        for number, (row, _) in enumerate(ROWS.values())
    ]


def as_read(parts: list[dict[str, Any]]) -> str:
    """What a model sees, each image as its number."""
    seen = ""
    for part in parts:
        if part["type"] == "text":
            seen += part["text"]
        else:
            encoded = part["source"]["data"] if part["type"] == "image" else part["image_url"]["url"]
            name = NAMES[base64.b64decode(encoded.rpartition(",")[2])]
            seen += f"[{name.rpartition('_')[2]}]"
    return seen


@asynccontextmanager
async def listening(bodies: list[dict[str, Any]]) -> AsyncIterator[str]:
    """An endpoint of both formats that keeps what it is sent and always says A."""

    async def openai(request: web.Request) -> web.Response:
        bodies.append(orjson.loads(await request.read()))
        choice = {"index": 0, "message": {"role": "assistant", "content": "A"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1}
        return web.json_response({"id": "c", "model": "m", "choices": [choice], "usage": usage})

    async def anthropic(request: web.Request) -> web.Response:
        bodies.append(orjson.loads(await request.read()))
        usage = {"input_tokens": 1, "output_tokens": 1}
        content = [{"type": "text", "text": "A"}]
        return web.json_response(
            {
                "id": "c",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": content,
                "stop_reason": "end_turn",
                "usage": usage,
            }
        )

    application = web.Application(client_max_size=2**25)
    application.router.add_post("/v1/chat/completions", openai)
    application.router.add_post("/v1/messages", anthropic)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@ENDPOINTS
async def test_images_arrive_between_the_words_that_name_them(tmp_path: Path, endpoint: str) -> None:
    table = tmp_path / "data" / "Art" / "validation-00000-of-00001.parquet"
    table.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows()), table)
    bodies: list[dict[str, Any]] = []
    async with listening(bodies) as url:
        base = f"{url}/v1" if endpoint == "openai" else url
        settings = RunConfig.model_validate(
            {
                "name": "r",
                "model": "m",
                "benchmark": "mmmu-val",
                "data": str(tmp_path / "data"),
                "store": tmp_path / "s.sqlite",
                "endpoint": endpoint,
                "base_url": base,
                "judge": JudgeConfig.model_validate({"endpoint": endpoint, "base_url": base}),
                "preflight": False,
            }
        )
        dry = api.dry_run(settings)
        assert (dry.rows, dry.problem_count) == (len(ROWS), 0)
        assert dry.blemishes["an image has no placeholder; it is put before the question"] == 1
        result = await api.evaluate(settings)
    assert result.complete
    sent = []
    for body in bodies:
        (message,) = body["messages"]
        assert message["role"] == "user"
        assert "system" not in body
        sent.append(as_read(message["content"]))
    assert sorted(sent) == sorted(expected for _, expected in ROWS.values())

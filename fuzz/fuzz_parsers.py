"""Coverage-guided fuzzing of everything that parses a reply, a row or an image. Not part of the tests.

pip install -e '.[fuzz]'
python fuzz/fuzz_parsers.py TARGET [CORPUS] -max_total_time=600

TARGET is one of: reply, verdict, response, stream, row, table, image, options, boxes. Without a corpus it
begins with small examples of its own. An input that breaks something is written to `crash-…`; the same
command with that file as last argument repeats it. Options after it are libFuzzer's.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

with atheris.instrument_imports(include=["mmbu_async"]):
    from mmbu_async import tasks
    from tests.property import parsers
    from tests.property.conftest import known

MINI = Path(__file__).resolve().parents[1] / "tests" / "data" / "mini_mmbu"
KINDS = ("openai", "anthropic", "responses", "gemini")
STATUSES = (200, 400, 401, 403, 404, 429, 500, 503)
ENDINGS = ("jsonl", "json", "csv", "tsv")


def fuzz_reply(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    for benchmark, sample in known().asked:
        parsers.reply(benchmark, sample, text)


def fuzz_verdict(data: bytes) -> None:
    parsers.verdict(data.decode("utf-8", "replace"))


def fuzz_response(data: bytes) -> None:
    if len(data) > 1:
        parsers.response(KINDS[data[0] % len(KINDS)], STATUSES[data[1] % len(STATUSES)], data[2:])


def fuzz_stream(data: bytes) -> None:
    if data:
        middle = data[0] * len(data) // 256
        parsers.stream(KINDS[data[0] % len(KINDS)], [data[1:middle], data[max(1, middle) :]])


def fuzz_row(data: bytes) -> None:
    names = sorted(known().rows)
    try:
        fields = json.loads(data[1:])
    except (ValueError, RecursionError):
        return
    if isinstance(fields, dict):
        parsers.row(tasks.load(names[data[0] % len(names)]), fields)


def fuzz_table(data: bytes) -> None:
    if data:
        parsers.table(_FOLDER / f"metadata.{ENDINGS[data[0] % len(ENDINGS)]}", data[1:])


def fuzz_image(data: bytes) -> None:
    parsers.image(data)


def fuzz_options(data: bytes) -> None:
    parsers.options(data.decode("utf-8", "surrogateescape"))


def fuzz_boxes(data: bytes) -> None:
    parsers.boxes(data.decode("utf-8", "surrogateescape"))


TARGETS: dict[str, Callable[[bytes], None]] = {
    name.removeprefix("fuzz_"): target
    for name, target in sorted(globals().items())
    if name.startswith("fuzz_")
}
_FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-"))


def seeds(target: str) -> list[bytes]:
    """Small examples to begin with."""
    tagged = b"<think>no <answer>x</answer></think>Because.\n<answer>[[1, 2, 3, 4]]</answer> **B** [RESULT] 1"
    openai = b'{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}'
    match target:
        case "response":
            return [
                b"\x00\x00" + openai,
                b"\x01\x05" + b'{"error":{"type":"rate_limit_error","message":"later"}}',
            ]
        case "stream":
            return [b"\x80data: " + openai.replace(b"message", b"delta") + b"\n\ndata: [DONE]\n\n"]
        case "row":
            names = sorted(known().rows)
            return [
                bytes([names.index(n)]) + json.dumps(row).encode()
                for n in names
                for row in known().rows[n][:1]
            ]
        case "table":
            first = (MINI / "metadata.jsonl").read_bytes().partition(b"\n")[0]
            return [b"\x00" + first, b"\x01[" + first + b"]", b"\x02a,b\n1,2\n", b"\x03a\tb\n1\t2\n"]
        case "image":
            return [file.read_bytes() for file in sorted((MINI / "images").iterdir())]
        case "options":
            return [b"['A) 1', 'B) 2']", b'["x", "y"]', b"A) one\nB) two"]
        case _:
            return [tagged, b"[RESULT] 0", b'```json\n[{"bbox_2d": [1, 2, 30, 40]}]\n```']


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"usage: python {sys.argv[0]} {'|'.join(TARGETS)} [CORPUS] [libFuzzer's options]")
    target = sys.argv.pop(1)
    known()
    if all(argument.startswith("-") for argument in sys.argv[1:]):
        corpus = Path(tempfile.mkdtemp(prefix=f"corpus-{target}-"))
        for number, seed in enumerate(seeds(target)):
            (corpus / str(number)).write_bytes(seed)
        sys.argv.insert(1, str(corpus))
    atheris.Setup(sys.argv, TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()

"""What is sent: synthetic work, a benchmark's rows, and how kind either is to caches."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from PIL import Image

from mmbu_async.bench.pool import Caching, Item, Pool
from mmbu_async.bench.rows import items, pick
from mmbu_async.bench.synthetic import ImageKind, Synthetic
from mmbu_async.config import CallSettings, RunConfig
from mmbu_async.endpoints.client import WIRE_FORMATS
from mmbu_async.endpoints.tokens import Estimator
from mmbu_async.errors import ConfigError, DataError
from mmbu_async.pipeline.opening import lay_out
from mmbu_async.pipeline.placement import Workshop
from tests.whole_run import MINI


def pool(
    items: list[Item], caching: Caching = Caching.PLAIN, endpoint: str = "openai", **changes: Any
) -> Pool:
    settings = CallSettings.model_validate({"model": "m", "endpoint": endpoint} | changes)
    made = Pool(items, wire=WIRE_FORMATS[endpoint](), settings=settings, caching=caching, seed=7)
    made.warm()
    return made


def picture(body: bytes, endpoint: str = "openai") -> Image.Image:
    parts = orjson.loads(body)["messages"][-1]["content"]
    if endpoint == "openai":
        url = next(part["image_url"]["url"] for part in parts if part["type"] == "image_url")
        data = url.partition(";base64,")[2]
    else:
        data = next(part["source"]["data"] for part in parts if part["type"] == "image")
    opened = Image.open(io.BytesIO(base64.b64decode(data)))
    opened.load()
    return opened


# ---------------------------------------------------------------- synthetic


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1024x768", ImageKind(width=1024, height=768)),
        ("64x48:png", ImageKind(width=64, height=48, media_type="image/png")),
        ("64X48:JPEG:90", ImageKind(width=64, height=48, quality=90)),
        ("64x48:webp:50", ImageKind(width=64, height=48, media_type="image/webp", quality=50)),
    ],
)
def test_a_kind_of_image_is_read_and_drawn_as_stated(text: str, kind: ImageKind) -> None:
    assert ImageKind.parse(text) == kind
    assert ImageKind.parse(kind.name) == kind
    drawn = kind.draw(1)
    opened = Image.open(io.BytesIO(drawn.data))
    opened.load()
    assert opened.size == (kind.width, kind.height)
    assert Image.MIME[str(opened.format)] == kind.media_type == drawn.media_type
    assert drawn.data == kind.draw(1).data
    assert drawn.data != kind.draw(2).data


@pytest.mark.parametrize(
    "text", ["", "large", "10", "0x5", "10x10:gif", "10x10:jpeg:0", "10x10:jpeg:101", "1x1:"]
)
def test_a_kind_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ConfigError, match="WIDTHxHEIGHT"):
        ImageKind.parse(text)


def test_files_have_the_size_of_photographs() -> None:
    drawn = ImageKind.parse("1024x768:jpeg:85").draw(3)
    assert 60_000 < len(drawn.data) < 400_000


@pytest.mark.parametrize("endpoint", ["openai", "anthropic"])
def test_synthetic_requests_have_the_stated_images_and_lengths(endpoint: str) -> None:
    work = Synthetic(
        kinds=(ImageKind.parse("64x48"), ImageKind.parse("32x32:png")),
        images=1,
        prompt_tokens=80,
        reply_tokens=9,
    )
    made = pool(work.items(1), endpoint=endpoint)
    assert made.distinct == 32
    sizes = {picture(made.next().body, endpoint).size for _ in range(32)}
    assert sizes == {(64, 48), (32, 32)}
    ask = made.next()
    assert (ask.images, ask.pixels) in ((1, 64 * 48), (1, 32 * 32))
    words = [text for item in work.items(1) for text in [item.prompt.text.split()]]
    assert {len(text) for text in words} == {80}


def test_several_images_and_none() -> None:
    two = pool(Synthetic(kinds=(ImageKind.parse("16x16"),), images=2).items(1)).next()
    assert (two.images, two.pixels) == (2, 512)
    none = pool(Synthetic(kinds=(), images=0).items(1)).next()
    assert (none.images, none.pixels) == (0, 0)


# ---------------------------------------------------------------- caches


KINDS = pytest.mark.parametrize("kind", ["48x32:jpeg", "48x32:png"])


@KINDS
@pytest.mark.parametrize("endpoint", ["openai", "anthropic"])
def test_busting_caches_no_two_requests_begin_alike_or_show_the_same_pixels(kind: str, endpoint: str) -> None:
    made = pool(Synthetic(kinds=(ImageKind.parse(kind),)).items(1), Caching.BUST, endpoint)
    bodies = [made.next().body for _ in range(60)]
    assert len(set(bodies)) == 60
    starts = {orjson.dumps(orjson.loads(body)["messages"])[:80] for body in bodies}
    assert len(starts) == 60
    shown = {np.asarray(picture(body, endpoint)).tobytes() for body in bodies}
    assert len(shown) == 60


def test_a_number_stands_before_the_system_message_where_there_is_one() -> None:
    from mmbu_async.model import Prompt

    item = Item(prompt=Prompt(parts=("question",), system="You look at cells."), images=())
    first, second = (orjson.loads(pool([item], Caching.BUST).next().body)["messages"] for _ in range(2))
    assert first[0]["role"] == "system"
    assert first[0]["content"].endswith("] You look at cells.")
    assert first[1]["content"] == "question"
    assert first == second, "the same seed gives the same requests"


def test_kind_to_caches_every_request_is_the_same() -> None:
    made = pool(Synthetic(kinds=(ImageKind.parse("16x16"),)).items(1), Caching.SAME)
    assert len({made.next().body for _ in range(20)}) == 1
    assert made.distinct == 1


def test_plain_work_comes_again_only_after_all_of_it() -> None:
    made = pool(Synthetic(kinds=(ImageKind.parse("16x16"),)).items(1))
    bodies = [made.next().body for _ in range(32)]
    assert len(set(bodies[:16])) == 16
    assert bodies[16:] == bodies[:16]


# ---------------------------------------------------------------- rows


def bench_of(**changes: Any) -> Any:
    return lay_out(RunConfig.model_validate({"model": "m", "data": str(MINI)} | changes))


def workshop(bench: Any) -> Workshop:
    return Workshop(
        benchmark=bench.rules.benchmark,
        read_image=bench.source.read_image,
        limits=bench.limits,
        wire=WIRE_FORMATS[bench.config.endpoint](),
        settings=bench.config,
        estimator=Estimator.of(bench.config),
    )


def test_rows_are_asked_as_a_run_asks_them() -> None:
    bench = bench_of()
    picked = pick(bench, 1000, 1)
    made, broken = items(picked, workshop(bench))
    assert picked.selected == len(made) + len(broken) == len(picked.rows)
    ready = {
        row.row.sample.id: row.body for row in workshop(bench).prepare(picked.rows) if hasattr(row, "body")
    }
    work = pool(made, max_tokens=bench.config.max_tokens)
    for _ in made:
        ask = work.next()
        assert ask.row is not None
        assert ask.body == ready[ask.row.sample.id]


def test_a_part_of_the_rows_is_drawn_at_random_and_the_same_by_the_same_seed() -> None:
    bench = bench_of()
    whole = pick(bench, 1000, 1).selected
    some = [frozenset(row.sample.id for row in pick(bench, 3, seed).rows) for seed in range(40)]
    assert {len(ids) for ids in some} == {3}
    assert pick(bench, 3, 5).rows == pick(bench, 3, 5).rows
    seen = {row for ids in some for row in ids}
    assert len(seen) > whole * 0.8, "every row can be drawn"
    assert pick(bench, 3, 1).selected == whole


def test_the_selection_is_heeded() -> None:
    bench = bench_of(limit=2)
    assert pick(bench, 1000, 1).selected == 2
    with pytest.raises(DataError, match="no row matches"):
        pick(bench_of(task=("nothing like it",)), 5, 1)


def test_rows_whose_images_cannot_be_sent_are_told(tmp_path: Path) -> None:
    bench = bench_of()
    picked = pick(bench, 1000, 1)

    def read(ref: Any) -> bytes:
        return b"no image"

    shop = workshop(bench)
    broken_shop = Workshop(
        benchmark=shop.benchmark,
        read_image=read,
        limits=shop.limits,
        wire=shop.wire,
        settings=shop.settings,
        estimator=shop.estimator,
    )
    with pytest.raises(DataError, match="not one of"):
        items(picked, broken_shop)

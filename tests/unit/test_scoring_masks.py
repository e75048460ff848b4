"""Masks: decoders beside COCO's own, damage of every kind, and overlaps beside counting pixels."""

from __future__ import annotations

import base64
import io
import json
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from PIL import Image

from mmbu_async.scoring.masks import (
    CHUNK_ROWS,
    MOST_PNG_PIXELS,
    Mask,
    class_overlaps,
    overlaps,
    png_labels,
    read_mask,
)

coco = pytest.importorskip("pycocotools.mask", reason="pycocotools, COCO's own tools, is not installed")

Pixels = npt.NDArray[np.bool_]
SIZES = st_numpy.array_shapes(min_dims=2, max_dims=2, max_side=12)
IMAGES = st_numpy.arrays(np.bool_, SIZES)
PAIRS = SIZES.flatmap(lambda size: st.tuples(*[st_numpy.arrays(np.bool_, size)] * 2))


def compressed(pixels: Pixels) -> dict[str, Any]:
    rle = coco.encode(np.asfortranarray(pixels, dtype=np.uint8))
    return {"size": list(rle["size"]), "counts": rle["counts"].decode()}


def uncompressed(pixels: Pixels) -> dict[str, Any]:
    counts, current = [0], False
    for pixel in pixels.ravel(order="F").tolist():
        if pixel is not current:
            counts.append(0)
            current = pixel
        counts[-1] += 1
    return {"size": list(pixels.shape), "counts": counts}


def png(values: npt.NDArray[Any]) -> bytes:
    data = io.BytesIO()
    Image.fromarray(values).save(data, "PNG")
    return data.getvalue()


def same(one: Mask, other: Mask) -> bool:
    return (one.height, one.width) == (other.height, other.width) and np.array_equal(one.pixels, other.pixels)


@given(pixels=IMAGES)
def test_every_form_gives_the_same_mask(pixels: Pixels) -> None:
    mask = Mask.from_array(pixels)
    assert np.array_equal(mask.pixels, pixels)
    assert mask.area == pixels.sum()
    assert same(mask, Mask.from_rle(compressed(pixels)))
    assert same(mask, Mask.from_rle(uncompressed(pixels)))
    assert same(mask, Mask.from_png(png(pixels)))
    assert same(mask, read_mask(f"The mask: {json.dumps({'mask': compressed(pixels)})}"))


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # pycocotools' own
@given(pixels=IMAGES)
def test_coco_s_tools_agree(pixels: Pixels) -> None:
    rle = compressed(pixels)
    mask = Mask.from_rle(rle)
    assert np.array_equal(mask.pixels, coco.decode(rle))
    assert mask.area == coco.area(rle)
    assert same(mask, Mask.from_rle({**rle, "counts": rle["counts"].encode()}))
    again = coco.frPyObjects(uncompressed(pixels), *pixels.shape)
    assert same(mask, Mask.from_rle({"size": rle["size"], "counts": again["counts"]}))


@given(size=st.tuples(st.integers(1, 3000), st.integers(1, 3000)), cuts=st.lists(st.integers(0, 9_000_000)))
def test_large_runs_are_decoded_as_coco_decodes_them(size: tuple[int, int], cuts: list[int]) -> None:
    total = size[0] * size[1]
    places = sorted({cut % total for cut in cuts})
    counts = np.diff([0, *places, total]).tolist()
    rle = coco.frPyObjects({"size": list(size), "counts": counts}, *size)
    mask = Mask.from_rle({"size": list(size), "counts": rle["counts"].decode()})
    assert mask.area == sum(counts[1::2])
    plain = Mask.from_rle({"size": list(size), "counts": counts})
    assert np.array_equal(mask.starts, plain.starts)
    assert np.array_equal(mask.ends, plain.ends)


@given(pairs=st.lists(PAIRS, max_size=5))
def test_overlaps_are_those_of_counted_pixels(pairs: list[tuple[Pixels, Pixels]]) -> None:
    found = overlaps(
        [Mask.from_array(one) for one, _ in pairs], [Mask.from_array(other) for _, other in pairs]
    )
    for row, (one, other) in enumerate(pairs):
        shared, both = int((one & other).sum()), int((one | other).sum())
        assert (found.shared[row], found.predicted[row], found.true[row]) == (shared, one.sum(), other.sum())
        assert found.iou[row] == (shared / both if both else 1.0)
        assert found.dice[row] == (2 * shared / (one.sum() + other.sum()) if both else 1.0)
        if both:
            assert found.iou[row] == coco.iou([compressed(one)], [compressed(other)], [0])[0, 0]


def test_rows_beyond_one_chunk_keep_their_order() -> None:
    full = Mask.from_array(np.ones((2, 3)))
    masks = [Mask.from_array(np.arange(6).reshape(2, 3) < row % 7) for row in range(2 * CHUNK_ROWS + 9)]
    found = overlaps(masks, [full] * len(masks))
    assert found.shared.tolist() == found.predicted.tolist() == [row % 7 for row in range(len(masks))]


def test_conventions_at_the_edges() -> None:
    empty, full = Mask.from_array(np.zeros((2, 3))), Mask.from_array(np.ones((2, 3)))
    found = overlaps([empty, empty, full, full], [empty, full, empty, full])
    assert found.dice.tolist() == found.iou.tolist() == [1.0, 0.0, 0.0, 1.0]
    none = overlaps([], [])
    assert none.dice.tolist() == []


def test_runs_that_touch_and_runs_of_nothing() -> None:
    mask = Mask.from_rle({"size": [2, 3], "counts": [0, 1, 0, 2, 0, 0, 1, 2]})
    assert mask.pixels.ravel(order="F").tolist() == [1, 1, 1, 0, 1, 1]
    other = Mask.from_rle({"size": [2, 3], "counts": [1, 5]})
    assert overlaps([mask], [other]).shared.tolist() == [4]
    assert overlaps([other], [mask]).shared.tolist() == [4]


def test_masks_of_different_sizes_are_an_error() -> None:
    small, large = Mask.from_array(np.ones((2, 3))), Mask.from_array(np.ones((3, 2)))
    with pytest.raises(ValueError, match="row 1: the predicted mask is 3 x 2 pixels, the true one 2 x 3"):
        overlaps([small, large], [small, small])
    with pytest.raises(ValueError, match="argument 2"):
        overlaps([small], [])


@pytest.mark.parametrize(
    ("rle", "words"),
    [
        ([1, 2], "an object with 'size' and 'counts'"),
        ({"counts": [1]}, "an object with 'size' and 'counts'"),
        ({"size": [1]}, "an object with 'size' and 'counts'"),
        ({"size": [2, 2, 2], "counts": [8]}, "two whole numbers above 0"),
        ({"size": "2x2", "counts": [4]}, "two whole numbers above 0"),
        ({"size": [0, 2], "counts": []}, "two whole numbers above 0"),
        ({"size": [2.0, 2], "counts": [4]}, "two whole numbers above 0"),
        ({"size": [True, 2], "counts": [2]}, "two whole numbers above 0"),
        ({"size": [100_000, 100_000], "counts": [10**10]}, "too large"),
        ({"size": [2, 2], "counts": [1, 2]}, "the runs cover 3 pixels, the image has 2 x 2"),
        ({"size": [2, 2], "counts": [1, 5]}, "the runs cover 6 pixels"),
        ({"size": [2, 2], "counts": []}, "the runs cover 0 pixels"),
        ({"size": [2, 2], "counts": ""}, "the runs cover 0 pixels"),
        ({"size": [2, 2], "counts": [5, -1]}, "negative, or longer"),
        ({"size": [2, 2], "counts": [10**30]}, "negative, or longer"),
        ({"size": [2, 2], "counts": [2.0, 2]}, "a text, or a list of whole numbers"),
        ({"size": [2, 2], "counts": 4}, "a text, or a list of whole numbers"),
        ({"size": [2, 2], "counts": [True, 3]}, "a text, or a list of whole numbers"),
        ({"size": [2, 2], "counts": "ü"}, "was cut off"),
        ({"size": [2, 2], "counts": " 4"}, "was cut off"),
        ({"size": [2, 2], "counts": "p"}, "was cut off"),
        ({"size": [2, 2], "counts": "4P"}, "was cut off"),
        ({"size": [2, 2], "counts": "PPPPPPPP0"}, "was cut off"),
        ({"size": [2, 2], "counts": "O"}, "negative, or longer"),
        ({"size": [2, 2], "counts": b"\xff"}, "was cut off"),
    ],
)
def test_damaged_run_lengths(rle: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Mask.from_rle(rle)


@given(
    size=st.tuples(st.integers(-1, 5), st.integers(-1, 5)),
    counts=st.text(max_size=12) | st.binary(max_size=12) | st.lists(st.integers(), max_size=6),
)
def test_any_counts_are_a_mask_or_a_value_error(size: tuple[int, int], counts: Any) -> None:
    try:
        mask = Mask.from_rle({"size": size, "counts": counts})
    except ValueError:
        return
    assert 0 <= mask.area <= size[0] * size[1]
    assert mask.pixels.sum() == mask.area


def test_numbers_in_a_png() -> None:
    values = np.array([[0, 1, 2], [3, 0, 255]], dtype=np.uint8)
    assert png_labels(png(values)).tolist() == values.tolist()
    assert png_labels(png(values > 0)).tolist() == (values > 0).astype(int).tolist()
    assert png_labels(png(values.astype(np.uint16) * 256)).tolist() == (values.astype(int) * 256).tolist()
    assert png_labels(png(np.stack([values] * 3, axis=-1))).tolist() == values.tolist()
    opaque = np.full_like(values, 255)
    assert png_labels(png(np.stack([values, opaque], axis=-1))).tolist() == values.tolist()
    assert png_labels(png(np.stack([values] * 3 + [opaque], axis=-1))).tolist() == values.tolist()


def test_a_palette_s_entries_are_the_labels() -> None:
    image = Image.fromarray(np.array([[0, 1], [2, 1]], dtype=np.uint8))
    image.putpalette([255, 255, 255, 10, 20, 30, 0, 0, 0])
    data = io.BytesIO()
    image.save(data, "PNG")
    assert png_labels(data.getvalue()).tolist() == [[0, 1], [2, 1]]
    assert Mask.from_png(data.getvalue()).area == 3


GREY = np.arange(100, dtype=np.uint8).reshape(10, 10)
HUGE = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + (100_000).to_bytes(4, "big") * 2


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no PNG image"),
        (b"\xff\xd8\xff", "no PNG image"),
        (png(GREY)[:20], "no PNG image"),
        (png(GREY)[:50], "damaged"),
        (png(GREY)[:24], "damaged"),
        (HUGE, f"more than {MOST_PNG_PIXELS:,}"),
        (png(np.stack([GREY, GREY, GREY + 1], axis=-1)), "colours"),
        (png(np.stack([GREY, GREY], axis=-1)), "see-through"),
    ],
)
def test_pngs_without_labels(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Mask.from_png(data)


@given(place=st.integers(8, 200), value=st.integers(0, 255), cut=st.integers(0, 250))
def test_a_damaged_png_is_a_value_error_or_an_image(place: int, value: int, cut: int) -> None:
    data = bytearray(png(GREY))
    data[place % len(data)] = value
    try:
        labels = png_labels(bytes(data[: len(data) - cut]))
    except ValueError:
        return
    assert labels.ndim == 2


def test_no_image() -> None:
    with pytest.raises(ValueError, match="rows and columns, not of shape"):
        Mask.from_array(np.zeros(4))
    with pytest.raises(ValueError, match="rows and columns, not of shape"):
        Mask.from_array(np.zeros((0, 4)))


def test_masks_in_answers() -> None:
    pixels = np.eye(4, dtype=np.bool_)
    mask = Mask.from_array(pixels)
    text = base64.b64encode(png(pixels)).decode()
    for answer in (
        text,
        f"data:image/png;base64,{text}",
        f" {text[:30]}\n{text[30:]}\n",
        json.dumps(compressed(pixels)),
    ):
        assert same(read_mask(answer), mask)
    assert same(read_mask(f'{{"a": 1}} {{ {json.dumps(uncompressed(pixels))}'), mask)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("", "there is no mask"),
        ("none", "there is no mask"),
        ("{" * 100_000, "there is no mask"),
        ('{"size": [2, 2]}', "there is no mask"),
        ('{"a": ' * 100_000, "there is no mask"),
        ('{"size": [2, 2], "counts": [3]}', "the runs cover 3 pixels"),
        ("iVBORw0KGgo=x", "no base64"),
        ("iVBORw0KGgoAAAANSUhEUg==", "no PNG image"),
    ],
)
def test_answers_without_a_mask(answer: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_mask(answer)


LABELS = st_numpy.arrays(np.int64, (3, 4), elements=st.integers(0, 4))


@given(predicted=LABELS, true=LABELS, ignore=st.none() | st.just(0))
def test_classes_are_counted_one_by_one(
    predicted: npt.NDArray[np.int64], true: npt.NDArray[np.int64], ignore: int | None
) -> None:
    classes = [3, 1, 2]
    found = class_overlaps(predicted, true, classes, ignore=ignore)
    counted = np.ones_like(true, dtype=bool) if ignore is None else true != ignore
    shares = []
    for place, label in enumerate(classes):
        one, other = (predicted == label) & counted, (true == label) & counted
        shared, both = int((one & other).sum()), int((one | other).sum())
        assert (found.shared[place], found.predicted[place], found.true[place]) == (
            shared,
            one.sum(),
            other.sum(),
        )
        if both:
            shares.append((shared / both, 2 * shared / (one.sum() + other.sum())))
    means = np.mean(shares, axis=0) if shares else (1.0, 1.0)
    assert (float(found.mean_iou), float(found.mean_dice)) == pytest.approx(tuple(means))


@pytest.mark.parametrize("classes", [[], [1, 1], [0, 1]])
def test_classes_that_make_no_sense(classes: list[int]) -> None:
    with pytest.raises(ValueError, match="each is named once"):
        class_overlaps(np.zeros((2, 2), dtype=int), np.zeros((2, 2), dtype=int), classes, ignore=0)


def test_label_images_of_different_sizes_are_an_error() -> None:
    with pytest.raises(ValueError, match="have the shape"):
        class_overlaps(np.zeros((2, 2), dtype=int), np.zeros((2, 3), dtype=int), [1])


def test_hostile_counts_take_linear_time() -> None:
    """Four times as long takes about four times as long."""

    def seconds(size: int) -> float:
        began = time.process_time()
        for text in ("0" * size, "P" * size, "1" * size):
            with pytest.raises(ValueError, match="run"):
                Mask.from_rle({"size": [2, 2], "counts": text})
        return time.process_time() - began

    assert min(seconds(400_000) for _ in range(2)) < 0.2 + 9 * min(seconds(100_000) for _ in range(2))

"""What is sent for each kind of image: untouched where accepted, else decoded by the rules of the package."""

from __future__ import annotations

import base64
import hashlib
import io
import struct
import threading
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from mmbu_async.errors import ImageError
from mmbu_async.images import ImageLimits, prepare, verify
from mmbu_async.model import PreparedImage

ANY = ImageLimits(name="any")
RANDOM = np.random.default_rng(7)


def photo(width: int = 60, height: int = 40) -> Image.Image:
    """Smooth colour, like a stain under a microscope."""
    small = RANDOM.integers(0, 255, (4, 4, 3), dtype=np.uint8)
    return Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)


def noise(width: int, height: int) -> Image.Image:
    """What no compressor makes smaller."""
    return Image.fromarray(RANDOM.integers(0, 255, (height, width, 3), dtype=np.uint8))


def encode(image: Image.Image, name: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, name, **options)
    return buffer.getvalue()


def shown(prepared: PreparedImage) -> Image.Image:
    return Image.open(io.BytesIO(prepared.data))


def pixels(prepared: PreparedImage) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.asarray(shown(prepared))


# ---------------------------------------------------------------- untouched


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (encode(photo(), "PNG"), "image/png"),
        (encode(photo().convert("L"), "PNG"), "image/png"),
        (encode(photo().convert("P"), "PNG"), "image/png"),
        (encode(photo().convert("1"), "PNG"), "image/png"),
        (encode(photo().convert("RGBA"), "PNG"), "image/png"),
        (encode(photo(), "JPEG"), "image/jpeg"),
        (encode(photo(), "JPEG", progressive=True), "image/jpeg"),
        (encode(photo().convert("L"), "JPEG"), "image/jpeg"),
        (encode(photo(), "JPEG") + b"\x00" * 500, "image/jpeg"),
        (encode(photo().convert("P"), "GIF"), "image/gif"),
        (encode(photo(), "WEBP"), "image/webp"),
        (encode(photo(), "WEBP", lossless=True), "image/webp"),
        (encode(photo().convert("RGBA"), "WEBP"), "image/webp"),
    ],
)
def test_accepted_bytes_go_through_untouched(data: bytes, media_type: str) -> None:
    prepared = prepare(data, ANY)
    assert prepared.data == data
    assert prepared.media_type == media_type
    assert (prepared.width, prepared.height) == (60, 40)
    assert prepared.scale == 1.0
    assert prepared.converted == ""
    assert prepared.original_sha256 == hashlib.sha256(data).hexdigest()
    verify(data)


def test_an_orientation_of_one_is_none() -> None:
    exif = Image.Exif()
    exif[274] = 1
    data = encode(photo(), "JPEG", exif=exif)
    assert prepare(data, ANY).data == data


def test_exactly_at_the_limits_is_within() -> None:
    data = encode(photo(60, 40), "PNG")
    size = len(base64.b64encode(data))
    limits = ImageLimits(name="exact", max_bytes_base64=size, max_edge=60, max_pixels=2400)
    assert prepare(data, limits).data == data


# ---------------------------------------------------------------- converted


def test_tiff_is_lossless() -> None:
    image = photo()
    prepared = prepare(encode(image, "TIFF"), ANY)
    assert (prepared.media_type, prepared.converted) == ("image/png", "tiff")
    assert np.array_equal(pixels(prepared), np.asarray(image))
    assert prepared.scale == 1.0


def test_bmp() -> None:
    image = photo()
    prepared = prepare(encode(image, "BMP"), ANY)
    assert prepared.converted == "bmp"
    assert np.array_equal(pixels(prepared), np.asarray(image))


def test_a_type_that_the_endpoint_does_not_accept() -> None:
    limits = ImageLimits(name="no gif", accepted=frozenset({"image/png", "image/jpeg"}))
    prepared = prepare(encode(photo().convert("P"), "GIF"), limits)
    assert (prepared.media_type, prepared.converted) == ("image/png", "gif")


@pytest.mark.parametrize("name", ["PNG", "TIFF"])
def test_sixteen_bits_are_stretched_from_minimum_to_maximum(name: str) -> None:
    values = np.array([[1000, 2000], [3000, 5000]], dtype=np.uint16)
    prepared = prepare(encode(Image.fromarray(values), name), ANY)
    assert "16-bit" in prepared.converted
    assert pixels(prepared).tolist() == [[0, 64], [128, 255]]


def test_sixteen_bits_of_one_value_are_black() -> None:
    prepared = prepare(encode(Image.fromarray(np.full((3, 3), 700, dtype=np.uint16)), "PNG"), ANY)
    assert not pixels(prepared).any()


def test_sixteen_bits_where_white_is_zero_are_inverted() -> None:
    values = np.array([[0, 1000]], dtype=np.uint16)
    data = encode(Image.fromarray(values), "TIFF", tiffinfo={262: 0})
    assert pixels(prepare(data, ANY)).tolist() == [[255, 0]]


def test_float_tiff_survives_what_is_no_number() -> None:
    values = np.array([[-1.0, 0.0, 1.0], [np.nan, np.inf, -np.inf]], dtype=np.float32)
    prepared = prepare(encode(Image.fromarray(values), "TIFF"), ANY)
    assert prepared.converted == "tiff, float"
    assert pixels(prepared).tolist() == [[0, 128, 255], [0, 255, 0]]


def test_thirty_two_bits() -> None:
    values = np.array([[-(10**9), 10**9]], dtype=np.int32)
    assert pixels(prepare(encode(Image.fromarray(values), "TIFF"), ANY)).tolist() == [[0, 255]]


def test_one_bit_tiff() -> None:
    image = Image.fromarray(np.array([[True, False]])).convert("1")
    assert pixels(prepare(encode(image, "TIFF"), ANY)).tolist() == [[255, 0]]


@pytest.mark.parametrize("name", ["JPEG", "TIFF"])
def test_cmyk_becomes_rgb(name: str) -> None:
    image = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    prepared = prepare(encode(image, name), ANY)
    assert shown(prepared).mode == "RGB"
    red, green, blue = pixels(prepared)[8, 8]
    assert red > 240
    assert green < 15
    assert blue < 15
    if name == "JPEG":
        assert prepared.converted == "cmyk"


def test_transparency_of_a_palette_is_laid_over_white() -> None:
    image = Image.new("P", (8, 8), 1)
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.putpixel((0, 0), 0)
    for name in ("PNG", "GIF"):
        prepared = prepare(encode(image, name, transparency=1), ANY)
        assert prepared.converted == "transparency"
        assert pixels(prepared)[0, 0].tolist() == [255, 0, 0]
        assert pixels(prepared)[4, 4].tolist() == [255, 255, 255]


def test_a_transparent_colour_is_laid_over_white() -> None:
    data = encode(Image.new("L", (8, 8), 5), "PNG", transparency=5)
    assert pixels(prepare(data, ANY))[0, 0].tolist() == [255, 255, 255]


def test_alpha_of_a_converted_image_is_laid_over_white() -> None:
    data = encode(Image.new("RGBA", (8, 8), (0, 0, 0, 51)), "TIFF")
    assert pixels(prepare(data, ANY))[0, 0].tolist() == [204, 204, 204]


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("name", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_a_rotated_image_is_sent_as_shown(orientation: int, name: str) -> None:
    image = Image.new("RGB", (48, 32), "white")
    image.paste("black", (0, 0, 16, 16))  # as stored: top left
    exif = Image.Exif()
    exif[274] = orientation
    options: dict[str, Any] = {"quality": 95} if name == "JPEG" else {}
    if name == "WEBP":
        options["lossless"] = True
    prepared = prepare(encode(image, name, exif=exif, **options), ANY)
    assert ("tiff" if name == "TIFF" else "rotated") in prepared.converted
    turned = orientation >= 5
    assert (prepared.width, prepared.height) == ((32, 48) if turned else (48, 32))
    assert shown(prepared).size == (prepared.width, prepared.height)
    corner = {2: "tr", 3: "br", 4: "bl", 5: "tl", 6: "tr", 7: "br", 8: "bl"}[orientation]
    y = 4 if corner[0] == "t" else prepared.height - 5
    x = 4 if corner[1] == "l" else prepared.width - 5
    picture = np.asarray(shown(prepared).convert("L"))
    assert picture[y, x] < 60
    assert picture[prepared.height - 1 - y, prepared.width - 1 - x] > 200
    # Shown once, it must not be turned again by whoever reads the file that is sent.
    assert shown(prepared).getexif().get(274, 1) == 1


@pytest.mark.parametrize("name", ["GIF", "WEBP", "PNG", "TIFF"])
def test_the_first_picture_of_several(name: str) -> None:
    first, second = Image.new("RGB", (12, 10), "red"), Image.new("RGB", (12, 10), "blue")
    options: dict[str, Any] = {"lossless": True} if name == "WEBP" else {}
    data = encode(first, name, save_all=True, append_images=[second], **options)
    prepared = prepare(data, ANY)
    assert ("tiff" if name == "TIFF" else "animated") in prepared.converted
    assert pixels(prepared)[5, 5].tolist() == [255, 0, 0]


def test_colour_profile_stays_where_the_colours_stay() -> None:
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    assert shown(prepare(encode(photo(), "TIFF", icc_profile=profile), ANY)).info["icc_profile"] == profile
    cmyk = encode(Image.new("CMYK", (8, 8)), "TIFF", icc_profile=profile)
    assert "icc_profile" not in shown(prepare(cmyk, ANY)).info


# ---------------------------------------------------------------- scaled


def test_too_many_pixels_on_an_edge() -> None:
    prepared = prepare(encode(photo(400, 200), "PNG"), ImageLimits(name="x", max_edge=100))
    assert (prepared.width, prepared.height, prepared.scale) == (100, 50, 0.25)
    assert prepared.converted == "scaled"
    assert shown(prepared).size == (100, 50)


def test_too_many_pixels_in_all() -> None:
    prepared = prepare(encode(photo(400, 200), "PNG"), ImageLimits(name="x", max_pixels=20_000))
    assert prepared.width * prepared.height <= 20_000
    assert prepared.scale == pytest.approx(0.5, abs=0.003)
    assert prepared.width / prepared.height == pytest.approx(2, rel=0.02)


def test_a_thin_image_keeps_a_pixel() -> None:
    prepared = prepare(encode(photo(1000, 2), "PNG"), ImageLimits(name="x", max_edge=100))
    assert (prepared.width, prepared.height) == (100, 1)


@pytest.mark.parametrize("name", ["PNG", "JPEG", "WEBP"])
def test_too_large_after_base64_is_scaled_down(name: str) -> None:
    """4.8 MB of file are 6.4 MB on the wire: the limit is on the latter."""
    image = noise(300, 300)
    options: dict[str, Any] = {"quality": 95} if name != "PNG" else {}
    data = encode(image, name, **options)
    limit = int(len(data) * 1.1)  # the file is below, its base64 is not
    assert len(data) < limit < len(base64.b64encode(data))
    prepared = prepare(data, ImageLimits(name="x", max_bytes_base64=limit))
    assert len(base64.b64encode(prepared.data)) <= limit
    assert 0.5 < prepared.scale < 1.0
    assert "scaled" in prepared.converted
    assert prepared.width == prepared.height == shown(prepared).width
    assert prepared.scale == pytest.approx(prepared.width / 300, abs=1e-9)


def test_a_lossless_image_that_is_too_large_stays_lossless() -> None:
    """Smaller, rather than blurred at full size."""
    grain = RANDOM.integers(0, 8, (400, 600, 3), dtype=np.uint8)
    data = encode(Image.fromarray(np.asarray(photo(600, 400)) // 2 + grain), "PNG")
    prepared = prepare(data, ImageLimits(name="x", max_bytes_base64=len(data)))
    assert prepared.media_type == "image/png"
    assert prepared.scale > 0.8
    assert prepared.converted == "scaled"


def test_jpeg_only_where_png_does_not_fit() -> None:
    image = noise(200, 200)
    data = encode(image, "TIFF")
    roomy = prepare(data, ImageLimits(name="x", max_bytes_base64=200_000))
    tight = prepare(data, ImageLimits(name="x", max_bytes_base64=140_000))
    assert (roomy.media_type, roomy.converted) == ("image/png", "tiff")
    assert (tight.media_type, tight.converted) == ("image/jpeg", "tiff, as jpeg")
    assert tight.scale == 1.0
    only_png = ImageLimits(name="x", max_bytes_base64=140_000, accepted=frozenset({"image/png"}))
    scaled = prepare(data, only_png)
    assert scaled.media_type == "image/png"
    assert scaled.scale < 1.0
    only_jpeg = prepare(data, ImageLimits(name="x", accepted=frozenset({"image/jpeg"})))
    assert only_jpeg.media_type == "image/jpeg"


def test_a_far_too_large_image_still_ends_within_the_limit() -> None:
    prepared = prepare(encode(noise(400, 400), "PNG"), ImageLimits(name="x", max_bytes_base64=4_000))
    assert len(base64.b64encode(prepared.data)) <= 4_000


def test_a_limit_that_nothing_fits_is_an_error() -> None:
    with pytest.raises(ImageError, match="does not fit"):
        prepare(encode(photo(), "PNG"), ImageLimits(name="x", max_bytes_base64=16))


def test_a_rotated_jpeg_is_scaled_in_its_shown_frame() -> None:
    """Boxes in the sent frame, divided by the scale, are boxes in the original as shown."""
    image = Image.new("L", (1600, 800), 255)
    image.paste(0, (1400, 0, 1600, 400))
    exif = Image.Exif()
    exif[274] = 6  # shown turned a quarter clockwise: the box lies at the bottom right
    prepared = prepare(encode(image, "JPEG", exif=exif), ImageLimits(name="x", max_edge=400))
    assert (prepared.width, prepared.height, prepared.scale) == (200, 400, 0.25)
    dark = np.argwhere(pixels(prepared) < 128)
    top, left = dark.min(axis=0) / prepared.scale
    bottom, right = (dark.max(axis=0) + 1) / prepared.scale
    assert (left, top, right, bottom) == pytest.approx((400, 1400, 800, 1600), abs=4)


def test_the_decoder_helps_where_a_jpeg_shrinks_much(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(photo(1600, 1200), "JPEG", quality=95)
    decoded: list[tuple[int, int]] = []
    resize = Image.Image.resize

    def spy(image: Image.Image, *arguments: Any, **named: Any) -> Image.Image:
        decoded.append(image.size)
        return resize(image, *arguments, **named)

    monkeypatch.setattr(Image.Image, "resize", spy)
    prepared = prepare(data, ImageLimits(name="x", max_edge=180))
    assert decoded == [(200, 150)]  # an eighth, not the whole
    assert (prepared.width, prepared.height, prepared.scale) == (180, 135, 180 / 1600)
    whole = Image.open(io.BytesIO(data))
    expected = np.asarray(resize(whole, (180, 135), Image.Resampling.LANCZOS), dtype=float)
    assert np.abs(pixels(prepared).astype(float) - expected).mean() < 4


# ---------------------------------------------------------------- many at once


def test_threads_do_not_disturb_each_other() -> None:
    inputs = [
        encode(photo(64 + 8 * i, 40), name) for i in range(4) for name in ("TIFF", "PNG", "JPEG", "BMP")
    ]
    limits = ImageLimits(name="x", max_edge=50)
    expected = [prepare(data, limits) for data in inputs]
    results: list[list[PreparedImage]] = []

    def work() -> None:
        results.append([prepare(data, limits) for data in inputs])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


# ---------------------------------------------------------------- a bomb


def png_claiming(width: int, height: int) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    picture = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", picture) + chunk(b"IEND", b"")


def test_a_decompression_bomb_is_refused_by_its_header() -> None:
    for call in (lambda data: prepare(data, ANY), verify):
        with pytest.raises(ImageError, match="100000 x 100000 pixels"):
            call(png_claiming(100_000, 100_000))


def test_a_bomb_in_other_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmbu_async.images.sniff.MAX_PIXELS", 1000)
    monkeypatch.setattr("mmbu_async.images.decode.MAX_PIXELS", 1000)
    for name in ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP", "PPM", "JPEG2000"):
        with pytest.raises(ImageError, match="60 x 40 pixels"):
            prepare(encode(photo(), name), ANY)


def test_pillows_own_bomb_alarm_is_an_image_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(ImageError, match=r"claims more than the 89,000,000 pixels"):
        prepare(encode(photo(), "PPM"), ANY)

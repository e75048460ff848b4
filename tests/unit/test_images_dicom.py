"""DICOM as a viewer shows it, and a clear word where the extra is not installed."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from mmbu_async.errors import ImageError
from mmbu_async.images import ImageLimits, prepare, verify

ANY = ImageLimits(name="any")
pytest.importorskip("pydicom")


def dicom(pixels: NDArray[Any], *, photometric: str = "MONOCHROME2", frames: int = 0, **tags: Any) -> bytes:
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.file_meta.MediaStorageSOPClassUID = CTImageStorage
    dataset.file_meta.MediaStorageSOPInstanceUID = generate_uid()
    shape = pixels.shape[1:] if frames else pixels.shape
    dataset.Rows, dataset.Columns = shape[:2]
    dataset.SamplesPerPixel = shape[2] if len(shape) == 3 else 1
    if dataset.SamplesPerPixel > 1:
        dataset.PlanarConfiguration = 0
    if frames:
        dataset.NumberOfFrames = frames
    dataset.PhotometricInterpretation = photometric
    dataset.BitsAllocated = dataset.BitsStored = 8 * pixels.dtype.itemsize
    dataset.HighBit = dataset.BitsStored - 1
    dataset.PixelRepresentation = int(pixels.dtype.kind == "i")
    for name, value in tags.items():
        setattr(dataset, name, value)
    dataset.PixelData = pixels.tobytes()
    buffer = io.BytesIO()
    dataset.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


def sent(data: bytes) -> list[Any]:
    prepared = prepare(data, ANY)
    assert (prepared.media_type, prepared.converted) == ("image/png", "dicom")
    return np.asarray(Image.open(io.BytesIO(prepared.data))).tolist()  # type: ignore[no-any-return]


CT = np.array([[0, 500, 1000], [1250, 1500, 4000]], dtype=np.uint16)


def test_rescale_and_window() -> None:
    """Stored 0..4000 are Hounsfield units from -1000; a window of 500 around 40 runs from -210 to 289."""
    data = dicom(CT, RescaleSlope=1, RescaleIntercept=-1000, WindowCenter=40, WindowWidth=500)
    tissue, bone = round(210 / 499 * 255), round(460 / 499 * 255)
    assert sent(data) == [[0, 0, tissue], [bone, 255, 255]]


def test_the_first_of_several_windows() -> None:
    several = dicom(CT, WindowCenter=[1000, 100], WindowWidth=[1001, 10])
    one = dicom(CT, WindowCenter=1000, WindowWidth=1001)
    assert sent(several) == sent(one)
    assert sent(one)[0] == [0, 0, round(500.5 / 1000 * 255)]


def test_an_exact_linear_window() -> None:
    data = dicom(CT, WindowCenter=1000, WindowWidth=1000, VOILUTFunction="LINEAR_EXACT")
    assert sent(data) == [[0, 0, 128], [191, 255, 255]]


def test_the_two_kinds_of_linear_windows_differ_by_a_grey_value() -> None:
    """LINEAR maps the last of `width` values to white, LINEAR_EXACT the one after it."""
    four = np.array([[0, 1, 2, 3]], dtype=np.uint16)
    assert sent(dicom(four, WindowCenter=2, WindowWidth=4)) == [[0, 85, 170, 255]]
    exact = dicom(four, WindowCenter=2, WindowWidth=4, VOILUTFunction="LINEAR_EXACT")
    assert sent(exact) == [[0, 64, 128, 191]]


def test_without_a_window_the_images_own_range() -> None:
    assert sent(dicom(CT)) == [[0, 32, 64], [80, 96, 255]]
    signed = np.array([[-100, 20, 100]], dtype=np.int16)
    assert sent(dicom(signed)) == [[0, 153, 255]]


def test_monochrome1_is_inverted() -> None:
    assert sent(dicom(CT, photometric="MONOCHROME1")) == [[255, 223, 191], [175, 159, 0]]


def test_colour() -> None:
    pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    assert sent(dicom(pixels, photometric="RGB")) == pixels.tolist()


def test_the_first_frame() -> None:
    frames = np.stack([CT, CT[::-1]])
    assert sent(dicom(frames, frames=2)) == sent(dicom(CT))


def test_scaled_like_any_other() -> None:
    pixels = np.tile(np.arange(200, dtype=np.uint16), (100, 1))
    prepared = prepare(dicom(pixels), ImageLimits(name="x", max_edge=50))
    assert (prepared.width, prepared.height, prepared.scale) == (50, 25, 0.25)
    assert prepared.converted == "dicom, scaled"


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dicom(CT)
    monkeypatch.setitem(sys.modules, "pydicom", None)
    with pytest.raises(ImageError, match=r"pip install \"mmbu-async\[dicom\]\""):
        prepare(data, ANY)


def test_a_file_without_a_picture() -> None:
    whole = dicom(CT)
    without = whole[: whole.index(b"\xe0\x7f\x10\x00")]
    with pytest.raises(ImageError, match="no picture"):
        prepare(without, ANY)


def test_an_absurd_size_is_refused_before_decoding() -> None:
    data = dicom(CT, Rows=60_000, Columns=60_000)
    with pytest.raises(ImageError, match="60000 x 60000"):
        verify(data)


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.8, 0.99])
def test_cut_and_mutated_files_are_image_errors(cut: float) -> None:
    data = dicom(np.zeros((64, 64), dtype=np.uint16))
    with pytest.raises(ImageError):
        prepare(data[: int(len(data) * cut)], ANY)
    random = np.random.default_rng(5)
    for _ in range(60):
        damaged = bytearray(data)
        for position in random.integers(132, 700, 4):
            damaged[int(position)] = int(random.integers(256))
        try:
            prepare(bytes(damaged), ANY)
        except ImageError as error:
            assert "\n" not in str(error)

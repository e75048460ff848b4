"""Image bytes -> what an endpoint accepts.

Bytes that an endpoint accepts go through untouched; the cheap look at their structure that decides this
decodes no pixel. Everything else is decoded, made 8-bit grey or RGB, scaled down where a limit asks for it,
and sent as PNG (as JPEG only where PNG does not fit). What that does to a picture, once and for all:

- *As shown* is the frame of all coordinates: an EXIF orientation is applied, so width and height are those
  that a viewer sees. `scale` is sent size / original size, one factor for both axes.
- Grey values of more than 8 bits (16-bit, 32-bit, float) are stretched linearly from the image's own minimum
  and maximum to 0..255: microscopes write 12 bits into 16. Colour with 16 bits a channel keeps the high byte.
- Transparency is laid over white where the image is converted at all. PNG and WebP with a full alpha channel
  are accepted everywhere and go through; palettes and colours that are marked transparent are converted.
- Of an animation, of a TIFF and of a DICOM series the first picture is taken.
- CMYK becomes RGB by the plain formula, without the colour profile.

An image that cannot be read is an ImageError of one sentence, without names: the caller knows row and file.
"""

from mmbu_async.images.limits import ImageLimits, find_limits
from mmbu_async.images.prepare import prepare, verify
from mmbu_async.images.sniff import MAX_PIXELS

__all__ = ["MAX_PIXELS", "ImageLimits", "find_limits", "prepare", "verify"]

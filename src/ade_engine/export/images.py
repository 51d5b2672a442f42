"""Find out the type and size of an image from its first bytes, without decoding it."""

import struct
from dataclasses import dataclass
from pathlib import Path

from ade_engine.export.export_errors import BadImage

PIXELS_MAX = 40_000_000
SIDE_PIXELS_MAX = 20_000
BYTES_MAX = 20_000_000
SUFFIX = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
KNOWN = "PNG, JPEG, GIF or WebP"

_PNG = b"\x89PNG\r\n\x1a\n"
# JPEG markers that start a frame, whose header has the size.
_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_STANDALONE = frozenset({0x01, *range(0xD0, 0xD8)})


@dataclass(frozen=True, slots=True)
class Image:
    """The path of an image, and what its first bytes say about it."""

    path: Path
    object_id: str
    media_type: str
    width_pixels: int
    height_pixels: int


def inspect_image(path: Path, claimed: str | None, object_id: str) -> Image:
    """Check an image; reject one of an unknown or another type, and one that is too large."""
    content = path.read_bytes()
    if len(content) > BYTES_MAX:
        raise BadImage(
            f"The image has {len(content):,} bytes; at most {BYTES_MAX:,} are allowed",
            object_id=object_id,
        )
    media_type = media_type_of(content)
    if media_type is None:
        raise BadImage(f"The image is not {KNOWN}", object_id=object_id)
    if claimed is not None and claimed != media_type:
        raise BadImage(
            f"The media type of the image is {claimed}, but its bytes are {media_type}",
            object_id=object_id,
        )
    size = size_of(content, media_type)
    if size is None or min(size) < 1:
        raise BadImage("The image is truncated or damaged", object_id=object_id)
    width, height = size
    if width * height > PIXELS_MAX or max(size) > SIDE_PIXELS_MAX:
        raise BadImage(
            f"The image has {width:,} x {height:,} pixels; at most {PIXELS_MAX:,} in total "
            f"and {SIDE_PIXELS_MAX:,} per side are allowed",
            object_id=object_id,
        )
    return Image(path, object_id, media_type, width, height)


def typst_format(image: Image) -> str:
    """Return the name that Typst has for the type of an image."""
    return SUFFIX[image.media_type]


def media_type_of(content: bytes) -> str | None:
    """Return the media type by the first bytes, or None if it is not supported."""
    if content.startswith(_PNG):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return None


def size_of(content: bytes, media_type: str) -> tuple[int, int] | None:
    """Return width and height from the header, or None if it is truncated."""
    try:
        return _READERS[media_type](content)
    except (struct.error, IndexError):
        return None


def _png(content: bytes) -> tuple[int, int] | None:
    if content[12:16] != b"IHDR":
        return None
    width, height = struct.unpack_from(">II", content, 16)
    return width, height


def _gif(content: bytes) -> tuple[int, int] | None:
    width, height = struct.unpack_from("<HH", content, 6)
    return width, height


def _jpeg(content: bytes) -> tuple[int, int] | None:
    """Skip markers until the first one that starts a frame."""
    at = 2
    while content[at] == 0xFF:
        marker = content[at + 1]
        if marker == 0xFF:  # padding
            at += 1
            continue
        if marker in _STANDALONE:
            at += 2
            continue
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", content, at + 5)
            return width, height
        (length,) = struct.unpack_from(">H", content, at + 2)
        if length < 2:
            return None
        at += 2 + length
    return None


def _webp(content: bytes) -> tuple[int, int] | None:
    chunk = content[12:16]
    if chunk == b"VP8X":
        width, height = (int.from_bytes(content[at : at + 3], "little") + 1 for at in (24, 27))
        return (width, height) if len(content) >= 30 else None
    if chunk == b"VP8L":
        (bits,) = struct.unpack_from("<I", content, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"VP8 ":
        width, height = struct.unpack_from("<HH", content, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


_READERS = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}

"""Images are recognised by their bytes, and rejected before they are decoded."""

import base64
from pathlib import Path

import pytest
from PIL import features
from tests.unit.engine.export.exported import HTML, drawn, export, image, png_of_zeros

from ade_engine.export.export_errors import BadImage
from ade_engine.export.images import (
    PIXELS_MAX,
    SIDE_PIXELS_MAX,
    inspect_image,
    media_type_of,
    size_of,
)

KINDS = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "GIF": "image/gif",
    "WEBP": "image/webp",
}


@pytest.mark.parametrize("kind", KINDS)
def test_type_and_size_are_read_from_the_header(kind: str) -> None:
    assert kind != "WEBP" or features.check("webp")
    content = drawn(37, 91, kind)
    assert media_type_of(content) == KINDS[kind]
    assert size_of(content, KINDS[kind]) == (37, 91)


@pytest.mark.parametrize(
    ("chunk", "size"),
    [
        (b"VP8X" + bytes(8) + (36).to_bytes(3, "little") + (90).to_bytes(3, "little"), (37, 91)),
        (b"VP8L" + bytes(5) + (36 | 90 << 14).to_bytes(4, "little"), (37, 91)),
        (b"VP8X" + bytes(8), None),
        (b"VP8L", None),
        (b"ALPH" + bytes(30), None),
    ],
)
def test_all_kinds_of_webp_have_a_size(chunk: bytes, size: tuple[int, int] | None) -> None:
    assert size_of(b"RIFF\x00\x00\x00\x00WEBP" + chunk, "image/webp") == size


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_exported(kind: str) -> None:
    content = drawn(40, 30, kind)
    result = export(image(content, KINDS[kind]), formats=("pdf", "html"))
    assert (result["pages"], result["warnings"]) == (1, [])
    data = base64.b64encode(content).decode()
    assert f'src="data:{KINDS[kind]};base64,{data}"' in HTML.read_text()


@pytest.mark.parametrize(("kind", "length"), [("PNG", 20), ("JPEG", 9), ("GIF", 8), ("WEBP", 20)])
def test_a_truncated_header_is_damage(kind: str, length: int, tmp_path: Path) -> None:
    place = tmp_path / "image"
    place.write_bytes(drawn(8, 8, kind)[:length])
    with pytest.raises(BadImage, match="damaged"):
        inspect_image(place, None, "o")


@pytest.mark.parametrize(
    ("content", "media_type", "words"),
    [
        (drawn(8, 8), "image/jpeg", "is image/jpeg, but its bytes are image/png"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/png", "not PNG, JPEG, GIF or WebP"),
        (b"", "image/png", "not PNG"),
        (b"%PDF-1.7", "image/png", "not PNG"),
        (png_of_zeros(60_000, 60_000), "image/png", "60,000 x 60,000 pixels"),
        (png_of_zeros(SIDE_PIXELS_MAX + 1, 1), "image/png", "per side"),
        (png_of_zeros(2**31, 2**31), "image/png", "pixels"),
        (png_of_zeros(0, 5), "image/png", "damaged"),
        (drawn(64, 64, "JPEG")[:200], "image/jpeg", "damaged|decoded"),
        (drawn(64, 64)[:60], "image/png", "decoded"),
    ],
)
def test_a_bad_image_is_rejected_with_its_object_id(
    content: bytes, media_type: str, words: str
) -> None:
    with pytest.raises(BadImage, match=words) as refused:
        export(image(drawn(5, 5)), image(content, media_type) | {"object_id": "the-bad-one"})
    assert refused.value.details() == {"object_id": "the-bad-one"}
    assert refused.value.category == "VALIDATION_ERROR"


def test_data_that_is_not_base64_is_rejected() -> None:
    bad = image(b"") | {"object_id": "x"}
    bad["content"]["data"] = "not base64!"
    with pytest.raises(BadImage, match="base64"):
        export(bad)


def test_all_images_together_have_a_limit() -> None:
    large = image(drawn(6_000, 6_000))
    assert PIXELS_MAX > 6_000 * 6_000
    with pytest.raises(BadImage, match="together"):
        export(large, large, large)

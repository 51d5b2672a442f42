"""A thumbnail has exactly the requested size and shows everything."""

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.unit.engine.export.exported import (
    code,
    drawn,
    equation,
    image,
    plain,
    png_of_zeros,
    table,
    text,
    thumbnail,
)

from ade_engine.channel import Channel
from ade_engine.entry import thumbnail as entry
from ade_engine.export.export_errors import BadImage, NoSuchPage

pytestmark = pytest.mark.usefixtures("job_folder")
SQUARE = [{"width": 100, "height": 100}]


def opened(width: int, height: int) -> Image.Image:
    """Open a thumbnail that was drawn."""
    return Image.open(io.BytesIO(Path(f"artifacts/thumbnail-{width}x{height}.png").read_bytes()))


@pytest.mark.parametrize("size", [(1, 1), (64, 48), (333, 777), (4_096, 1), (1, 4_096)])
def test_a_thumbnail_has_exactly_the_requested_size(size: tuple[int, int]) -> None:
    width, height = size
    result = thumbnail(object=text("# hello"), sizes=[{"width": width, "height": height}])
    assert opened(width, height).size == size
    assert result == {
        "page": 1,
        "pages": 1,
        "sizes": [{"width": width, "height": height}],
        "warnings": [],
    }


@pytest.mark.parametrize(
    "given",
    [
        text("# a\n\nb $c$"),
        plain("a"),
        equation(r"\frac{1}{2}"),
        code("x = 1", {"stdout": "1"}),
        table(["a"], [[1]]),
        image(drawn(50, 50)),
    ],
    ids=["text", "plain", "equation", "code", "table", "image"],
)
def test_every_object_is_drawn_inside_its_thumbnail(given: dict[str, Any]) -> None:
    thumbnail(object=given, sizes=SQUARE)
    drawing = opened(100, 100).convert("L")
    box = drawing.point([255] * 200 + [0] * 56).getbbox()
    assert box is not None
    assert box[0] > 0
    assert box[1] > 0
    assert box[2] < 100
    assert box[3] < 100


def test_an_object_is_centred() -> None:
    thumbnail(object=image(drawn(400, 100, color="#000000")), sizes=[{"width": 300, "height": 300}])
    box = opened(300, 300).convert("L").point([255] * 128 + [0] * 128).getbbox()
    assert box is not None
    left, top, right, bottom = box
    assert abs(left - (300 - right)) <= 1
    assert abs(top - (300 - bottom)) <= 1
    assert (right - left) / (bottom - top) == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize(
    ("background", "corner"), [("white", (255,) * 4), ("transparent", (0,) * 4)]
)
@pytest.mark.parametrize("view_mode", ["document", "slide", None])
def test_the_background_is_white_or_transparent(
    background: str, corner: tuple[int, ...], view_mode: str | None
) -> None:
    thing: dict[str, Any] = (
        {"object": text("a")}
        if view_mode is None
        else {"document": {"objects": [text("a")]}, "view_mode": view_mode}
    )
    thumbnail(**thing, sizes=SQUARE, background=background)
    drawing = opened(100, 100).convert("RGBA")
    assert drawing.getpixel((0, 0)) == corner
    assert drawing.getpixel((99, 99)) == corner
    assert max(drawing.getchannel("A").tobytes()) > 10


def test_the_requested_page_is_drawn() -> None:
    document = {"objects": [text("# A"), text("# B"), image(drawn(900, 500)) | {"slide": 3}]}
    pictures = []
    for page in (1, 2, 3):
        thumbnail(document=document, view_mode="slide", page=page, sizes=SQUARE)
        pictures.append(opened(100, 100).convert("RGB").tobytes())
    assert len(set(pictures)) == 3
    red = Image.frombytes("RGB", (100, 100), pictures[2]).getpixel((50, 50))
    assert isinstance(red, tuple)
    assert red[0] > 150 > 80 > red[1]


def test_a_missing_page_is_an_error() -> None:
    with pytest.raises(NoSuchPage, match="no page 3; the document has 2"):
        thumbnail(
            document={"objects": [text("# A"), text("# B")]},
            view_mode="slide",
            page=3,
            sizes=SQUARE,
        )


@pytest.mark.parametrize(
    "given",
    [
        text("x" * 100_000),
        code("x" * 100_000),
        table(["a"], [["x" * 5_000]] * 20),
    ],
    ids=["word", "code", "cells"],
)
def test_very_long_words_take_no_longer_than_as_many_short_ones(given: dict[str, Any]) -> None:
    thumbnail(object=text("a"), sizes=SQUARE)  # what is done once is done
    other = f"lorem{len(str(given))} "  # the typesetter remembers what it has set
    as_it_should = cpu_seconds(text(other * (100_000 // len(other))))
    assert cpu_seconds(given) < 8 * as_it_should


def cpu_seconds(given: dict[str, Any]) -> float:
    """Draw an object; return the CPU time that it took."""
    began = time.process_time()
    thumbnail(object=given, sizes=SQUARE)
    return time.process_time() - began


def test_short_lines_keep_their_width_however_many_there_are() -> None:
    thumbnail(object=plain("|||||\n" * 100), sizes=[{"width": 400, "height": 400}])
    box = opened(400, 400).convert("L").point([255] * 200 + [0] * 56).getbbox()
    assert box is not None
    assert abs((400 - box[2]) - box[0]) < 5  # in the middle: not on the left of a wide page


def test_a_bomb_is_not_drawn() -> None:
    with pytest.raises(BadImage):
        thumbnail(object=image(png_of_zeros(50_000, 50_000)), sizes=SQUARE)


def test_each_thumbnail_is_declared() -> None:
    stream = io.StringIO()
    inputs = {"object": text("a"), "sizes": SQUARE, "background": "white"}
    entry.main(inputs, Channel(stream))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["artifact"] for line in lines if "artifact" in line] == [
        {
            "name": "thumbnail-100x100.png",
            "kind": "thumbnail",
            "metadata": {"width": 100, "height": 100},
        }
    ]

"""A PNG has the requested pixels and a transparent background, and is always the same."""

import io

import pytest
from PIL import Image

from ade_engine.render import BadPicture, formula_svg, to_png
from ade_engine.render.raster import PIXELS_MAX, png_size


def drawn(svg: str, scale: float = 1.0) -> Image.Image:
    return Image.open(io.BytesIO(to_png(svg, scale=scale))).convert("RGBA")


def square(inner: str, side: float = 10) -> str:
    size = f'width="{side}" height="{side}" viewBox="0 0 10 10"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{inner}</svg>'


@pytest.mark.parametrize("scale", [0.5, 1, 2, 3.3])
def test_an_image_has_the_requested_pixels(scale: float) -> None:
    picture = formula_svg(r"\frac{a}{b}", size=40)
    width, height = png_size(to_png(picture.svg, scale=scale))
    assert width == pytest.approx(picture.width * scale, abs=1)
    assert height == pytest.approx(picture.height * scale, abs=1)


def test_the_background_is_transparent() -> None:
    image = drawn(square('<rect x="5" width="5" height="10" fill="#ff0000"/>'))
    assert image.getpixel((2, 5)) == (0, 0, 0, 0)
    assert image.getpixel((7, 5)) == (255, 0, 0, 255)


def test_the_current_colour_becomes_black() -> None:
    image = drawn(square('<rect width="10" height="10" fill="currentColor"/>'))
    assert image.getpixel((5, 5)) == (0, 0, 0, 255)


def test_the_same_drawing_gives_the_same_bytes() -> None:
    svg = formula_svg(r"\sum_{i=1}^n x_i").svg
    assert to_png(svg) == to_png(svg)


@pytest.mark.parametrize("family", ["Times,serif", "Courier", "DejaVu Sans", "Helvetica", "Odd"])
def test_text_is_drawn_whatever_its_font_is_called(family: str) -> None:
    text = f'<text y="9" font-size="9" font-family="{family}">M</text>'
    ink = drawn(square(text), scale=4).getchannel("A").getbbox()
    assert ink is not None
    assert ink[2] - ink[0] > 10


def test_the_bundled_fonts_differ() -> None:
    def width(family: str) -> int:
        text = f'<text y="9" font-size="4" font-family="{family}">iiii</text>'
        box = drawn(square(text), scale=8).getchannel("A").getbbox()
        assert box is not None
        return int(box[2] - box[0])

    assert width("monospace") > 1.5 * width("sans-serif")


def test_too_many_pixels_are_rejected_before_they_are_drawn() -> None:
    side = (PIXELS_MAX**0.5) + 1
    with pytest.raises(BadPicture, match="Choose a smaller scale"):
        to_png(square("", side), scale=1)
    with pytest.raises(BadPicture, match="pixels; at most 25,000,000 are allowed"):
        to_png(square("", side / 4), scale=4.1)


@pytest.mark.parametrize("scale", [0, 0.09, 16.1, float("nan")])
def test_a_scale_beyond_the_limits_is_rejected(scale: float) -> None:
    with pytest.raises(BadPicture, match="The scale is"):
        to_png(square(""), scale=scale)

"""Have Typst set pages: PDF, and PNG of a page."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import typst

from ade_engine.export.export_errors import BadImage, LayoutFailed
from ade_engine.export.images import Image, typst_format
from ade_engine.render import typst_threads

assert typst_threads  # how many Typst may start

TEMPLATES = (
    "content.typ",
    "document.typ",
    "slides.typ",
    "object.typ",
    "thumbnail.typ",
    "image.typ",
    "characters.typ",
)
DATA = "data.json"
POINTS_PER_INCH = 72
MESSAGE_CHARS_MAX = 500


@dataclass(frozen=True, slots=True)
class Pages:
    """Hold a PDF, how many pages it has, and at which scale each slide was set."""

    pdf: bytes
    count: int
    scales: dict[int, float]


def lay_out(folder: Path) -> None:
    """Put the templates into a folder; Typst reads nothing outside of the folder around it."""
    folder.mkdir(exist_ok=True)
    for name in TEMPLATES:
        source = resources.files(__package__).joinpath("templates", name)
        (folder / name).write_bytes(source.read_bytes())


def set_pages(
    folder: Path,
    template: str,
    data: dict[str, Any],
    fonts: typst.Fonts,
    *,
    fill: str = "white",
    images: Iterable[Image] = (),
) -> Pages:
    """Set the data as the template says. The bytes depend on nothing else: there is no date."""
    (folder / DATA).write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    try:
        compiler = typst.Compiler(
            folder / template, root=folder.parent, font_paths=fonts, sys_inputs={"fill": fill}
        )
        pdf = compiler.compile(format="pdf")
        facts = json.loads(compiler.query("<facts>", field="value"))
        fits = json.loads(compiler.query("<fit>", field="value"))
    except typst.TypstError as error:
        raise _blamed(error, folder, images) from None
    assert isinstance(pdf, bytes)
    scales: dict[int, float] = {}
    for fit in fits:
        scales[fit["slide"]] = min(fit["scale"], scales.get(fit["slide"], 1.0))
    return Pages(pdf, facts[0]["pages"], scales)


def draw_page(
    folder: Path, pdf: bytes, page: int, width: int, height: int, fonts: typst.Fonts, *, fill: str
) -> bytes:
    """Return a page as PNG of exactly this size, the page fitted into it."""
    (folder / "page.pdf").write_bytes(pdf)
    asked = {"page": str(page), "width": str(width), "height": str(height), "fill": fill}
    try:
        png = typst.compile(
            folder / "thumbnail.typ",
            root=folder.parent,
            font_paths=fonts,
            format="png",
            ppi=POINTS_PER_INCH,
            sys_inputs=asked,
        )
    except typst.TypstError as error:
        raise LayoutFailed(str(error.message)[:MESSAGE_CHARS_MAX]) from None
    assert isinstance(png, bytes)
    return png


def _blamed(error: typst.TypstError, folder: Path, images: Iterable[Image]) -> Exception:
    """Find the image that could not be decoded, if it was one; anything else is our fault."""
    for image in images:
        if not _can_decode(image, folder):
            return BadImage("The image cannot be decoded", object_id=image.object_id)
    return LayoutFailed(f"The pages could not be set: {error.message}"[:MESSAGE_CHARS_MAX])


def _can_decode(image: Image, folder: Path) -> bool:
    path, form = f"/{image.path.as_posix()}", typst_format(image)
    try:
        typst.compile(
            folder / "image.typ", root=folder.parent, sys_inputs={"path": path, "format": form}
        )
    except typst.TypstError:
        return False
    return True

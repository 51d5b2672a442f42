"""Typeset documents and objects to PDF by Typst, and draw a page of a PDF as PNG."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import typst

from ade_engine.export.document_tree import Blocks, DocumentTree
from ade_engine.export.export_errors import BadImage, LayoutFailed
from ade_engine.export.export_warnings import ExportWarnings
from ade_engine.export.fonts import ChosenFonts, fonts_for
from ade_engine.export.formula_drawings import FormulaDrawings
from ade_engine.export.images import Image, typst_format
from ade_engine.export.typst_data import TypstData
from ade_engine.render import typst_threads

assert typst_threads  # imported for its effect on Typst

# The folder for templates, data and images, in the working directory of the job.
LAYOUT_FOLDER = Path("layout")

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
SLIDE = "slide"
# Titles of slides have 27 points on a page of ten inches; scaled below this they are hard to read.
READABLE_SCALE = 0.55


@dataclass(frozen=True, slots=True)
class Pages:
    """A PDF, its number of pages, the scale of each slide, and the pages of those with several."""

    pdf: bytes
    count: int
    scales: dict[int, float]
    continued: dict[int, int]


def write_templates(folder: Path) -> None:
    """Write the templates to a folder; Typst reads nothing outside of the folder's parent."""
    folder.mkdir(exist_ok=True)
    for name in TEMPLATES:
        source = resources.files(__package__).joinpath("templates", name)
        (folder / name).write_bytes(source.read_bytes())


def typeset_document(
    folder: Path,
    document: DocumentTree,
    formulas: FormulaDrawings,
    warnings: ExportWarnings,
    *,
    view_mode: str,
    notes: bool = False,
    fill: str = "white",
) -> Pages:
    """Typeset a document as running pages or as slides."""
    writer = TypstData(formulas)
    if view_mode == SLIDE:
        data, template = writer.slides(document, notes=notes), "slides.typ"
    else:
        data, template = writer.document(document, notes=notes), "document.typ"
    fonts = fonts_for(writer.characters, document.language, folder, warnings)
    pages = _typeset(folder, template, data, fonts, writer.images, fill)
    if writer.narrow_tables:
        warnings.add(
            "table_too_wide",
            f"Tables with more columns than fit on a page: {writer.narrow_tables}. Most words in "
            "them are broken; split them into several tables.",
        )
    _warn_of_full_slides(pages, warnings)
    return pages


def _warn_of_full_slides(pages: Pages, warnings: ExportWarnings) -> None:
    for slide, count in sorted(pages.continued.items()):
        warnings.add(
            "slide_continued",
            f"Slide {slide} has too much content for one page: it continues over {count} pages.",
        )
    for slide, scale in sorted(pages.scales.items()):
        if scale < READABLE_SCALE:
            warnings.add(
                "slide_too_full",
                f"The title of slide {slide} is too long: it was scaled to {scale:.1%} to fit.",
            )


def typeset_object(
    folder: Path, blocks: Blocks, formulas: FormulaDrawings, warnings: ExportWarnings, *, fill: str
) -> Pages:
    """Typeset one object on a page of its own size."""
    writer = TypstData(formulas)
    data = writer.object(blocks)
    fonts = fonts_for(writer.characters, "", folder, warnings)
    return _typeset(folder, "object.typ", data, fonts, writer.images, fill)


def _typeset(
    folder: Path,
    template: str,
    data: dict[str, Any],
    fonts: ChosenFonts,
    images: Iterable[Image],
    fill: str,
) -> Pages:
    """Typeset the data by a template; the PDF has no date, so equal input gives equal bytes."""
    data = data | {"families": fonts.families}
    (folder / DATA).write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    try:
        compiler = typst.Compiler(
            folder / template, root=folder.parent, font_paths=fonts.fonts, sys_inputs={"fill": fill}
        )
        pdf = compiler.compile(format="pdf")
        facts = json.loads(compiler.query("<facts>", field="value"))
        fits = json.loads(compiler.query("<fit>", field="value"))
        continued = json.loads(compiler.query("<continued>", field="value"))
    except typst.TypstError as error:
        raise _explained(error, folder, images) from None
    assert isinstance(pdf, bytes)
    scales: dict[int, float] = {}
    for fit in fits:
        scales[fit["slide"]] = min(fit["scale"], scales.get(fit["slide"], 1.0))
    parts = {one["slide"]: one["pages"] for one in continued}
    return Pages(pdf, facts[0]["pages"], scales, parts)


def draw_page(
    folder: Path, pdf: bytes, page: int, width: int, height: int, fonts: typst.Fonts, *, fill: str
) -> bytes:
    """Return a page as PNG of exactly this size, scaled to fit."""
    (folder / "page.pdf").write_bytes(pdf)
    sys_inputs = {"page": str(page), "width": str(width), "height": str(height), "fill": fill}
    try:
        png = typst.compile(
            folder / "thumbnail.typ",
            root=folder.parent,
            font_paths=fonts,
            format="png",
            ppi=POINTS_PER_INCH,
            sys_inputs=sys_inputs,
        )
    except typst.TypstError as error:
        raise LayoutFailed(str(error.message)[:MESSAGE_CHARS_MAX]) from None
    assert isinstance(png, bytes)
    return png


def _explained(error: typst.TypstError, folder: Path, images: Iterable[Image]) -> Exception:
    """Return BadImage if an image cannot be decoded; any other error is a fault of ADE."""
    for image in images:
        if not _can_decode(image, folder):
            return BadImage("The image cannot be decoded", object_id=image.object_id)
    return LayoutFailed(f"The pages could not be typeset: {error.message}"[:MESSAGE_CHARS_MAX])


def _can_decode(image: Image, folder: Path) -> bool:
    path, form = f"/{image.path.as_posix()}", typst_format(image)
    try:
        typst.compile(
            folder / "image.typ", root=folder.parent, sys_inputs={"path": path, "format": form}
        )
    except typst.TypstError:
        return False
    return True

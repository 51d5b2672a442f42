"""Draw thumbnails: a page of a document, or one object, in pictures of given sizes."""

from typing import Any

import typst

from ade_engine.channel import Channel
from ade_engine.entry.export import ARTIFACTS, FOLDER, paginate
from ade_engine.export.document_reader import read
from ade_engine.export.document_tree import Document
from ade_engine.export.export_errors import NoSuchPage
from ade_engine.export.export_warnings import Warnings
from ade_engine.export.fonts import fonts_for, own_fonts
from ade_engine.export.formula_drawings import draw_all
from ade_engine.export.pages import Pages, draw_page, lay_out, set_pages
from ade_engine.export.typst_data import Layout


def main(inputs: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Draw a thumbnail of each size; the files are left in `artifacts/`."""
    warnings = Warnings()
    lay_out(FOLDER)
    ARTIFACTS.mkdir(exist_ok=True)
    given, background = inputs.get("document"), inputs["background"]
    if given is not None:
        document = read(given, FOLDER, warnings)
        pages = _pages(document, warnings, inputs["view_mode"], background)
        page = inputs["page"]
        if page > pages.count:
            raise NoSuchPage(f"There is no page {page}, the document has {pages.count}")
    else:
        document = read({"objects": [inputs["object"]]}, FOLDER, warnings)
        pages, page = _object(document, warnings, background), 1
    sizes = inputs["sizes"]
    for number, size in enumerate(sizes):
        channel.progress(number, len(sizes), "drawing thumbnails")
        _draw(pages, page, size, background, channel)
    return {"page": page, "pages": pages.count, "sizes": sizes, "warnings": warnings.told()}


def _draw(pages: Pages, page: int, size: dict[str, int], background: str, channel: Channel) -> None:
    width, height = size["width"], size["height"]
    png = draw_page(FOLDER, pages.pdf, page, width, height, own_fonts(), fill=background)
    name = f"thumbnail-{width}x{height}.png"
    (ARTIFACTS / name).write_bytes(png)
    channel.artifact(name, kind="thumbnail", metadata={"width": width, "height": height})


def _pages(document: Document, warnings: Warnings, view_mode: str, background: str) -> Pages:
    formulas = draw_all(document, warnings, _quietly)
    return paginate(document, formulas, warnings, view_mode=view_mode, notes=False, fill=background)


def _object(document: Document, warnings: Warnings, background: str) -> Pages:
    layout = Layout(draw_all(document, warnings, _quietly))
    data = layout.object(document.items[0].blocks)
    fonts: typst.Fonts = fonts_for(layout.characters, FOLDER, warnings)
    return set_pages(FOLDER, "object.typ", data, fonts, fill=background, images=layout.images)


def _quietly(done: int, total: int) -> None:
    """Drawing formulas for a thumbnail is too short to tell."""

"""Draw thumbnails of a page or of one object in given sizes (kind `thumbnail_generate`)."""

from pathlib import Path
from typing import Any

from ade_engine.channel import ARTIFACTS_FOLDER, Channel
from ade_engine.export.document_reader import read_document
from ade_engine.export.export_errors import NoSuchPage
from ade_engine.export.export_warnings import ExportWarnings
from ade_engine.export.fonts import embedded_fonts
from ade_engine.export.formula_drawings import draw_formulas
from ade_engine.export.pages import (
    LAYOUT_FOLDER,
    Pages,
    draw_page,
    typeset_document,
    typeset_object,
    write_templates,
)

ARTIFACTS = Path(ARTIFACTS_FOLDER)


def main(inputs: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Draw a thumbnail of each size; write the files to `artifacts/`."""
    warnings = ExportWarnings()
    write_templates(LAYOUT_FOLDER)
    ARTIFACTS.mkdir(exist_ok=True)
    submitted, background = inputs.get("document"), inputs["background"]
    document = read_document(
        {"objects": [inputs["object"]]} if submitted is None else submitted, LAYOUT_FOLDER, warnings
    )
    formulas = draw_formulas(document, warnings)
    if submitted is None:
        page, blocks = 1, document.items[0].blocks
        pages = typeset_object(LAYOUT_FOLDER, blocks, formulas, warnings, fill=background)
    else:
        page, view = inputs["page"], inputs["view_mode"]
        pages = typeset_document(
            LAYOUT_FOLDER, document, formulas, warnings, view_mode=view, fill=background
        )
        if page > pages.count:
            raise NoSuchPage(f"There is no page {page}; the document has {pages.count}")
    sizes = inputs["sizes"]
    for number, size in enumerate(sizes):
        channel.progress(number, len(sizes), "drawing thumbnails")
        _draw(pages, page, size, background, channel)
    return {"page": page, "pages": pages.count, "sizes": sizes, "warnings": warnings.as_json()}


def _draw(pages: Pages, page: int, size: dict[str, int], background: str, channel: Channel) -> None:
    width, height = size["width"], size["height"]
    png = draw_page(
        LAYOUT_FOLDER, pages.pdf, page, width, height, embedded_fonts(), fill=background
    )
    name = f"thumbnail-{width}x{height}.png"
    (ARTIFACTS / name).write_bytes(png)
    channel.artifact(name, kind="thumbnail", metadata={"width": width, "height": height})

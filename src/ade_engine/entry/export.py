"""Export a document: read it, draw its formulas, set its pages, write what was asked for."""

from pathlib import Path
from typing import Any

from ade_engine.channel import Channel
from ade_engine.export.document_reader import read
from ade_engine.export.document_tree import Document
from ade_engine.export.export_warnings import Warnings
from ade_engine.export.fonts import fonts_for
from ade_engine.export.formula_drawings import Formulas, draw_all
from ade_engine.export.html_writer import write_html
from ade_engine.export.pages import Pages, lay_out, set_pages
from ade_engine.export.typst_data import Layout

FOLDER = Path("layout")
ARTIFACTS = Path("artifacts")
SLIDE = "slide"
# Letters of slides are 17 points high, ten inches wide: what is scaled below this is hard to read.
READABLE_SCALE = 0.55
FORMULAS_PER_REPORT = 25
STEPS = 100
DRAWN, SET = 50, 90


def main(inputs: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Export the document of the inputs; the files are left in `artifacts/`."""
    warnings = Warnings()
    lay_out(FOLDER)
    ARTIFACTS.mkdir(exist_ok=True)
    document = read(inputs["document"], FOLDER, warnings)
    formulas = draw_all(document, warnings, lambda done, total: _report(channel, done, total))
    view, notes = inputs["view_mode"], inputs["include_speaker_notes"]
    result: dict[str, Any] = {"formats": inputs["formats"], "view_mode": view, "pages": None}
    if "pdf" in inputs["formats"]:
        channel.progress(DRAWN, STEPS, "setting pages")
        pages = paginate(document, formulas, warnings, view_mode=view, notes=notes)
        (ARTIFACTS / "document.pdf").write_bytes(pages.pdf)
        channel.artifact("document.pdf", kind="document", metadata={"pages": pages.count})
        result["pages"] = pages.count
    if "html" in inputs["formats"]:
        channel.progress(SET, STEPS, "writing HTML")
        page = write_html(document, formulas, view_mode=view, notes=notes)
        (ARTIFACTS / "document.html").write_text(page, encoding="utf-8")
        channel.artifact("document.html", kind="document")
    channel.progress(STEPS, STEPS, "written")
    return result | {"warnings": warnings.told()}


def paginate(
    document: Document,
    formulas: Formulas,
    warnings: Warnings,
    *,
    view_mode: str,
    notes: bool,
    fill: str = "white",
) -> Pages:
    """Set the pages of a document in one of its views."""
    layout = Layout(formulas)
    if view_mode == SLIDE:
        data, template = layout.slides(document, notes=notes), "slides.typ"
    else:
        data, template = layout.document(document, notes=notes), "document.typ"
    fonts = fonts_for(layout.characters, FOLDER, warnings)
    pages = set_pages(FOLDER, template, data, fonts, fill=fill, images=layout.images)
    for slide, scale in sorted(pages.scales.items()):
        if scale < READABLE_SCALE:
            warnings.add(
                "slide_too_full",
                f"Slide {slide} holds too much: it was scaled to {scale:.1%} to fit.",
            )
    return pages


def _report(channel: Channel, done: int, total: int) -> None:
    if done % FORMULAS_PER_REPORT == 0 and total > FORMULAS_PER_REPORT:
        channel.progress(DRAWN * done // total, STEPS, f"drawing formula {done + 1} of {total}")

"""Export a document to PDF and HTML (kind `document_export`)."""

from pathlib import Path
from typing import Any

from ade_engine.channel import ARTIFACTS_FOLDER, Channel
from ade_engine.export.document_reader import read_document
from ade_engine.export.export_warnings import ExportWarnings
from ade_engine.export.formula_drawings import draw_formulas
from ade_engine.export.html_writer import write_html
from ade_engine.export.pages import LAYOUT_FOLDER, typeset_document, write_templates

ARTIFACTS = Path(ARTIFACTS_FOLDER)
FORMULAS_PER_REPORT = 25
# The progress, of STEPS, after the formulas are drawn and after the pages are typeset.
DRAWN, TYPESET, STEPS = 50, 90, 100


def main(inputs: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Export the document of the inputs; write the files to `artifacts/`."""
    warnings = ExportWarnings()
    write_templates(LAYOUT_FOLDER)
    ARTIFACTS.mkdir(exist_ok=True)
    document = read_document(inputs["document"], LAYOUT_FOLDER, warnings)
    formulas = draw_formulas(document, warnings, lambda done, total: _report(channel, done, total))
    view, notes = inputs["view_mode"], inputs["include_speaker_notes"]
    result: dict[str, Any] = {"formats": inputs["formats"], "view_mode": view, "pages": None}
    if "pdf" in inputs["formats"]:
        channel.progress(DRAWN, STEPS, "typesetting pages")
        pages = typeset_document(
            LAYOUT_FOLDER, document, formulas, warnings, view_mode=view, notes=notes
        )
        (ARTIFACTS / "document.pdf").write_bytes(pages.pdf)
        channel.artifact("document.pdf", kind="document", metadata={"pages": pages.count})
        result["pages"] = pages.count
    if "html" in inputs["formats"]:
        channel.progress(TYPESET, STEPS, "writing HTML")
        page = write_html(document, formulas, view_mode=view, notes=notes)
        (ARTIFACTS / "document.html").write_text(page, encoding="utf-8")
        channel.artifact("document.html", kind="document")
    channel.progress(STEPS, STEPS, "written")
    return result | {"warnings": warnings.as_json()}


def _report(channel: Channel, done: int, total: int) -> None:
    if done % FORMULAS_PER_REPORT == 0 and total > FORMULAS_PER_REPORT:
        channel.progress(DRAWN * done // total, STEPS, f"drawing formula {done + 1} of {total}")

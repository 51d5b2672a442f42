"""Export a document to PDF, HTML and a bundle of its files (kind `document_export`)."""

from pathlib import Path
from typing import Any

from ade_engine.channel import ARTIFACTS_FOLDER, Channel
from ade_engine.export.bundle import write_bundle
from ade_engine.export.document_reader import read_document
from ade_engine.export.export_warnings import ExportWarnings
from ade_engine.export.formula_drawings import draw_formulas
from ade_engine.export.html_writer import write_html
from ade_engine.export.pages import LAYOUT_FOLDER, typeset_document, write_templates

ARTIFACTS = Path(ARTIFACTS_FOLDER)
FORMULAS_PER_REPORT = 25
# The progress, of STEPS, after the formulas are drawn and after the pages are typeset.
DRAWN, TYPESET, BUNDLED, STEPS = 50, 90, 95, 100
PDF, HTML, BUNDLE = "document.pdf", "document.html", "document.zip"


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
        (ARTIFACTS / PDF).write_bytes(pages.pdf)
        channel.artifact(PDF, kind="document", metadata={"pages": pages.count})
        result["pages"] = pages.count
    if "html" in inputs["formats"]:
        channel.progress(TYPESET, STEPS, "writing HTML")
        page = write_html(document, formulas, view_mode=view, notes=notes)
        (ARTIFACTS / HTML).write_text(page, encoding="utf-8")
        channel.artifact(HTML, kind="document")
    if "bundle" in inputs["formats"]:
        channel.progress(BUNDLED, STEPS, "writing the bundle")
        readable = [path for path in (ARTIFACTS / PDF, ARTIFACTS / HTML) if path.exists()]
        if not readable:
            page = write_html(document, formulas, view_mode=view, notes=notes)
            readable = [LAYOUT_FOLDER / HTML]
            readable[0].write_text(page, encoding="utf-8")
        _bundle(inputs, readable, channel)
    channel.progress(STEPS, STEPS, "written")
    return result | {"warnings": warnings.as_json()}


def _bundle(inputs: dict[str, Any], readable: list[Path], channel: Channel) -> None:
    """Write the bundle; speaker notes are in it only on request."""
    submitted = inputs["document"]
    if not inputs["include_speaker_notes"]:
        submitted = submitted | {"objects": [one | {"notes": ""} for one in submitted["objects"]]}
    further = inputs.get("artifacts") or []
    count = write_bundle(ARTIFACTS / BUNDLE, submitted, readable, further)
    channel.artifact(BUNDLE, kind="bundle", metadata={"files": count})


def _report(channel: Channel, done: int, total: int) -> None:
    if done % FORMULAS_PER_REPORT == 0 and total > FORMULAS_PER_REPORT:
        channel.progress(DRAWN * done // total, STEPS, f"drawing formula {done + 1} of {total}")

"""Make small workbooks from raw XML, and read files into plain dictionaries."""

import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ade_engine.sheets.fast_path_errors import FastPathUnsupported
from ade_engine.sheets.read_limits import ReadOptions
from ade_engine.sheets.workbook import Sheet, open_workbook

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"

STYLES = f"""<styleSheet xmlns="{MAIN}"><numFmts count="1">
<numFmt numFmtId="170" formatCode="[$-409]d\\-mmm\\-yy;@"/></numFmts>
<cellXfs count="5"><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/><xf numFmtId="170"/>
<xf numFmtId="46"/></cellXfs></styleSheet>"""

CORPUS = Path(os.environ.get("ADE_TEST_CORPUS", Path(__file__).parents[5] / "shared" / "corpus"))
needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the corpus of spreadsheets is missing; ADE_TEST_CORPUS names it"
)

Cells = dict[tuple[int, int], object]


def sheet_xml(rows: str, *, before: str = "", after: str = "") -> str:
    """Surround rows with a sheet."""
    return f'<worksheet xmlns="{MAIN}">{before}<sheetData>{rows}</sheetData>{after}</worksheet>'


def xlsx(
    path: Path,
    *sheets: str | bytes,
    strings: str | bytes | None = None,
    workbook: str = "",
    states: tuple[str, ...] = (),
    parts: dict[str, bytes] | None = None,
    compression: int = zipfile.ZIP_DEFLATED,
) -> Path:
    """Write a workbook whose sheets are given as XML."""
    listed = "".join(
        f'<sheet name="S{n}" sheetId="{n}" r:id="rId{n}"'
        + (f' state="{states[n - 1]}"' if n <= len(states) else "")
        + "/>"
        for n in range(1, len(sheets) + 1)
    )
    relations = "".join(
        f'<Relationship Id="rId{n}" Type="{RELATIONS}/worksheet" Target="worksheets/s{n}.xml"/>'
        for n in range(1, len(sheets) + 1)
    )
    root = f'<Relationship Id="r1" Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/>'
    files: dict[str, str | bytes] = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{root}</Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}">{workbook}'
        f"<sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{relations}'
        "</Relationships>",
        "xl/styles.xml": STYLES,
    }
    files |= {f"xl/worksheets/s{n}.xml": sheet for n, sheet in enumerate(sheets, 1)}
    if strings is not None:
        files["xl/sharedStrings.xml"] = strings
    files |= parts or {}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def sst(*items: str) -> str:
    """Make a table of shared strings from the XML of its items."""
    return f'<sst xmlns="{MAIN}">{"".join(f"<si>{item}</si>" for item in items)}</sst>'


def cells_of(sheet: Sheet) -> Cells:
    """Read a sheet into {(row, column): value}."""
    return {
        (row, column): value
        for block in sheet.blocks()
        for row, values in block.values()
        for column, value in values.items()
    }


def read(path: Path, options: ReadOptions | None = None) -> Cells:
    """Read the first sheet of a file."""
    with open_workbook(path, options) as book:
        return cells_of(book.sheets[0])


def read_both_ways(path: Path) -> Cells:
    """Read the first sheet with the fast reader and the slow one, which must agree."""
    found: list[Any] = []
    for way in (0, 1):
        with open_workbook(path) as book:
            sheet = book.sheets[0]
            sheet._reads = [sheet._reads[way]]
            try:
                cells = cells_of(sheet)
            except FastPathUnsupported:
                continue
            metadata = (
                sheet.merged,
                sheet.hidden_rows.tolist(),
                sheet.hidden_columns,
                sheet.format_marks,
            )
            found.append((cells, sheet.height, sheet.width, *metadata))
    assert all(one == found[0] for one in found)
    cells_found: Cells = found[0][0]
    return cells_found


def fast_path_reads(path: Path) -> bool:
    """Return whether the fast reader can read the first sheet."""
    with open_workbook(path) as book:
        sheet = book.sheets[0]
        sheet._reads = sheet._reads[:1]
        try:
            sheet.scan()
        except FastPathUnsupported:
            return False
        return True

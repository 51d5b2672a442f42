"""The parts of a workbook that do not depend on its cells."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "application/vnd.openxmlformats-officedocument.spreadsheetml"

SHEET_HEAD = (
    f'{HEAD}<worksheet xmlns="{MAIN}"><sheetViews><sheetView workbookViewId="0">'
    '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
    "</sheetView></sheetViews><sheetData>"
)
SHEET_TAIL = "</sheetData></worksheet>"

STYLE_DATE, STYLE_MOMENT, STYLE_TIME, STYLE_HEADER, STYLE_LITERAL = 1, 2, 3, 4, 5
"""Indexes into the styles below; a literal is a text that a program might take for a formula."""

STYLES = f"""{HEAD}<styleSheet xmlns="{MAIN}">\
<numFmts count="2"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>\
<numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/></numFmts>\
<fonts count="2"><font><sz val="11"/><name val="Calibri"/><family val="2"/></font>\
<font><b/><sz val="11"/><name val="Calibri"/><family val="2"/></font></fonts>\
<fills count="2"><fill><patternFill patternType="none"/></fill>\
<fill><patternFill patternType="gray125"/></fill></fills>\
<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>\
<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>\
<cellXfs count="6"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>\
<xf numFmtId="164" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>\
<xf numFmtId="165" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>\
<xf numFmtId="21" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>\
<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/>\
<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0" quotePrefix="1"/></cellXfs>\
<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>\
</styleSheet>"""

ROOT_RELATIONS = f"""{HEAD}<Relationships xmlns="{PACKAGE}/relationships">\
<Relationship Id="rId1" Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/>\
</Relationships>"""


def sheet_part(number: int) -> str:
    """Return the name of a sheet's part; the first sheet is 1."""
    return f"xl/worksheets/sheet{number}.xml"


def content_types(sheets: int) -> str:
    """Return the part that lists the content type of each part."""
    overrides = "".join(
        f'<Override PartName="/{sheet_part(number)}" ContentType="{OFFICE}.worksheet+xml"/>'
        for number in range(1, sheets + 1)
    )
    rels = "application/vnd.openxmlformats-package.relationships+xml"
    return (
        f'{HEAD}<Types xmlns="{PACKAGE}/content-types">'
        f'<Default Extension="rels" ContentType="{rels}"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{OFFICE}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{OFFICE}.styles+xml"/>'
        f"{overrides}</Types>"
    )


def workbook(names: list[str]) -> str:
    """Return the part that lists the sheets."""
    sheets = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{number}" r:id="rId{number}"/>'
        for number, name in enumerate(names, 1)
    )
    return (
        f'{HEAD}<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{sheets}</sheets></workbook>'
    )


def workbook_relations(sheets: int) -> str:
    """Return the relationships of the workbook to its sheets and styles."""
    relations = "".join(
        f'<Relationship Id="rId{number}" Type="{RELATIONS}/worksheet"'
        f' Target="{escape(sheet_part(number).removeprefix("xl/"))}"/>'
        for number in range(1, sheets + 1)
    )
    styles = f'<Relationship Id="rIdStyles" Type="{RELATIONS}/styles" Target="styles.xml"/>'
    return (
        f'{HEAD}<Relationships xmlns="{PACKAGE}/relationships">{relations}{styles}</Relationships>'
    )

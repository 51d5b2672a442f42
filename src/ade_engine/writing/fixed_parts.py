"""The parts of a workbook that do not depend on its cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from ade_engine.writing.text_xml import escape_text

HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "application/vnd.openxmlformats-officedocument"
CORE = "http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
EXTENDED = "http://schemas.openxmlformats.org/officeDocument/2006/extended-properties"


@dataclass(frozen=True)
class Properties:
    """What the workbook says about itself; no date, so that equal runs give equal bytes."""

    title: str = ""
    subject: str = ""
    description: str = ""
    application: str = "ADE"


@dataclass(frozen=True)
class Relation:
    """A reference of one part to another, or to a file beside the workbook."""

    name: str
    kind: str
    target: str
    external: bool = False


@dataclass(frozen=True)
class SheetEntry:
    """What the workbook's list of sheets says about one sheet."""

    name: str
    filtered: str = ""
    """The range with filter buttons, with `$` signs."""


def sheet_part(number: int) -> str:
    """Return the name of a sheet's part; the first sheet is 1."""
    return f"xl/worksheets/sheet{number}.xml"


def relations(listed: Iterable[Relation]) -> str:
    """Return a part that lists the relations of another one."""
    lines = "".join(
        f'<Relationship Id="{one.name}" Type="{one.kind}" Target={quoteattr(one.target)}'
        + (' TargetMode="External"/>' if one.external else "/>")
        for one in listed
    )
    return f'{HEAD}<Relationships xmlns="{PACKAGE}/relationships">{lines}</Relationships>'


ROOT_RELATIONS = relations(
    [
        Relation("rId1", f"{RELATIONS}/officeDocument", "xl/workbook.xml"),
        Relation("rId2", f"{PACKAGE}/relationships/metadata/core-properties", "docProps/core.xml"),
        Relation("rId3", f"{RELATIONS}/extended-properties", "docProps/app.xml"),
    ]
)


def workbook_relations(sheets: int) -> str:
    """Return the relations of the workbook to its sheets and styles."""
    return relations(
        [
            *(
                Relation(
                    f"rId{number}",
                    f"{RELATIONS}/worksheet",
                    sheet_part(number).removeprefix("xl/"),
                )
                for number in range(1, sheets + 1)
            ),
            Relation("rIdStyles", f"{RELATIONS}/styles", "styles.xml"),
        ]
    )


def content_types(sheets: int, with_notes: Iterable[int]) -> str:
    """Return the part that lists the content type of each part."""
    types = [
        ("/xl/workbook.xml", f"{OFFICE}.spreadsheetml.sheet.main+xml"),
        ("/xl/styles.xml", f"{OFFICE}.spreadsheetml.styles+xml"),
        ("/docProps/core.xml", "application/vnd.openxmlformats-package.core-properties+xml"),
        ("/docProps/app.xml", f"{OFFICE}.extended-properties+xml"),
        *(
            (f"/{sheet_part(number)}", f"{OFFICE}.spreadsheetml.worksheet+xml")
            for number in range(1, sheets + 1)
        ),
        *(
            (f"/xl/comments{number}.xml", f"{OFFICE}.spreadsheetml.comments+xml")
            for number in with_notes
        ),
    ]
    overrides = "".join(
        f'<Override PartName="{part}" ContentType="{kind}"/>' for part, kind in types
    )
    rels = "application/vnd.openxmlformats-package.relationships+xml"
    return (
        f'{HEAD}<Types xmlns="{PACKAGE}/content-types">'
        f'<Default Extension="rels" ContentType="{rels}"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Default Extension="vml" ContentType="{OFFICE}.vmlDrawing"/>'
        f"{overrides}</Types>"
    )


def workbook(listed: Sequence[SheetEntry]) -> str:
    """Return the part that lists the sheets, their filters, and the rows that each page repeats."""
    sheets = "".join(
        f'<sheet name={quoteattr(one.name)} sheetId="{number}" r:id="rId{number}"/>'
        for number, one in enumerate(listed, 1)
    )
    filters = "".join(
        f'<definedName name="_xlnm._FilterDatabase" localSheetId="{number}" hidden="1">'
        f"{escape_text(quoted(one.name))}!{one.filtered}</definedName>"
        for number, one in enumerate(listed)
        if one.filtered
    )
    titles = "".join(
        f'<definedName name="_xlnm.Print_Titles" localSheetId="{number}">'
        f"{escape_text(quoted(one.name))}!$1:$1</definedName>"
        for number, one in enumerate(listed)
    )
    return (
        f'{HEAD}<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><bookViews><workbookView/>'
        f"</bookViews><sheets>{sheets}</sheets>"
        f"<definedNames>{filters}{titles}</definedNames></workbook>"
    )


def quoted(sheet: str) -> str:
    """Return a sheet's name as references write it."""
    return "'" + sheet.replace("'", "''") + "'"


def core_properties(properties: Properties) -> str:
    """Return the part with the properties that every document has."""
    return (
        f'{HEAD}<cp:coreProperties xmlns:cp="{CORE}" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{escape_text(properties.title)}</dc:title>"
        f"<dc:subject>{escape_text(properties.subject)}</dc:subject>"
        f"<dc:creator>{escape_text(properties.application)}</dc:creator>"
        f"<dc:description>{escape_text(properties.description)}</dc:description>"
        "</cp:coreProperties>"
    )


def application_properties(properties: Properties) -> str:
    """Return the part that names the program."""
    return (
        f'{HEAD}<Properties xmlns="{EXTENDED}"><Application>'
        f"{escape_text(properties.application)}</Application></Properties>"
    )

"""Read a workbook's list of sheets, its date system and its number formats."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field

import numpy as np

from ade_engine.errors import DamagedFile
from ade_engine.sheets.arrays import BoolArray
from ade_engine.sheets.dates import BUILT_IN_DATES, shows_date
from ade_engine.sheets.safe_xml import Attributes, attribute, parse, plain_name
from ade_engine.sheets.zip_reader import ZipReader

MAIN_PART = "xl/workbook.xml"
STYLES_MAX = 100_000


@dataclass(frozen=True, slots=True)
class SheetPart:
    """One sheet: its name, and the part of the archive that holds its cells."""

    name: str
    hidden: bool
    part: str


@dataclass(slots=True)
class WorkbookInfo:
    """What is needed to read the cells of a workbook."""

    sheets: list[SheetPart] = field(default_factory=list)
    epoch_1904: bool = False
    strings: str | None = None
    date_styles: BoolArray = field(default_factory=lambda: np.zeros(0, np.bool_))


def read_workbook_info(archive: ZipReader, sheets_max: int) -> WorkbookInfo:
    """Read the parts that describe the workbook."""
    main = _main_part(archive)
    targets = relations(archive, main)
    info = WorkbookInfo()
    _read_workbook(archive, main, targets, info, sheets_max)
    if not info.sheets:
        info.sheets = _sheets_by_name(archive)
    if not info.sheets:
        raise DamagedFile("the workbook has no sheet with cells")
    info.strings = _one(archive, targets, "/sharedStrings", "xl/sharedStrings.xml")
    styles = _one(archive, targets, "/styles", "xl/styles.xml")
    if styles is not None:
        info.date_styles = _date_styles(archive, styles)
    return info


def _main_part(archive: ZipReader) -> str:
    if "_rels/.rels" in archive:
        for kind, target in relations(archive, "").values():
            if kind.endswith("/officeDocument") and target in archive:
                return target
    if MAIN_PART in archive:
        return MAIN_PART
    raise DamagedFile("the archive does not hold a workbook")


def relations(archive: ZipReader, part: str) -> dict[str, tuple[str, str]]:
    """Return the relationships of a part: {id: (type, target part)}."""
    folder, name = posixpath.split(part)
    source = posixpath.join(folder, "_rels", f"{name}.rels")
    found: dict[str, tuple[str, str]] = {}

    def start(element: str, attributes: Attributes) -> None:
        if plain_name(element) == "Relationship" and attributes.get("TargetMode") != "External":
            target = attributes.get("Target", "").replace("\\", "/")
            absolute = target if target.startswith("/") else posixpath.join("/", folder, target)
            path = posixpath.normpath(absolute).lstrip("/")
            found[attributes.get("Id", "")] = (attributes.get("Type", ""), path)

    if source in archive:
        parse([archive.read(source)], start, where=source)
    return found


def _read_workbook(
    archive: ZipReader,
    main: str,
    targets: dict[str, tuple[str, str]],
    info: WorkbookInfo,
    sheets_max: int,
) -> None:
    def start(element: str, attributes: Attributes) -> None:
        match plain_name(element):
            case "workbookPr" if attributes.get("date1904") in ("1", "true", "on"):
                info.epoch_1904 = True  # ignores an extension element of the same name
            case "sheet" if len(info.sheets) < sheets_max:
                kind, path = targets.get(_relation_id(attributes), ("", ""))
                if kind.endswith("/worksheet") and path in archive:
                    hidden = attributes.get("state", "visible") != "visible"
                    info.sheets.append(SheetPart(attributes.get("name", ""), hidden, path))

    parse([archive.read(main)], start, where=main)


def _relation_id(attributes: Attributes) -> str:
    return next((v for key, v in attributes.items() if key.endswith(":id")), "")


def _sheets_by_name(archive: ZipReader) -> list[SheetPart]:
    """List the sheets of a workbook whose relationships are missing."""
    paths = [n for n in archive.names() if n.startswith("xl/worksheets/") and n.endswith(".xml")]
    paths.sort(key=lambda path: (len(path), path))
    return [SheetPart(posixpath.basename(path)[:-4], False, path) for path in paths]


def _one(
    archive: ZipReader, targets: dict[str, tuple[str, str]], ending: str, usual: str
) -> str | None:
    for kind, path in targets.values():
        if kind.endswith(ending) and path in archive:
            return path
    return usual if usual in archive else None


def _date_styles(archive: ZipReader, part: str) -> BoolArray:
    """Mark the cell styles whose number format shows a date."""
    formats: dict[str, bool] = {}
    styles: list[str] = []
    inside = {"numFmts": False, "cellXfs": False}

    def start(element: str, attributes: Attributes) -> None:
        name = plain_name(element)
        if name in inside:
            inside[name] = True
        elif name == "numFmt" and inside["numFmts"]:
            code = attribute(attributes, "formatCode")
            formats[attribute(attributes, "numFmtId")] = shows_date(code)
        elif name == "xf" and inside["cellXfs"] and len(styles) < STYLES_MAX:
            styles.append(attribute(attributes, "numFmtId", "0"))

    def end(element: str) -> None:
        name = plain_name(element)
        if name in inside:
            inside[name] = False

    parse([archive.read(part)], start, end, where=part)
    built_in = {str(number): True for number in BUILT_IN_DATES}
    known = built_in | formats
    return np.array([known.get(style, False) for style in styles], np.bool_)

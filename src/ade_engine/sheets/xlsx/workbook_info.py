"""Read a workbook's list of sheets, its date system and its number formats."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field

import numpy as np

from ade_engine.errors import DamagedFile, UnreadableFile
from ade_engine.sheets.arrays import BoolArray, IntArray
from ade_engine.sheets.currencies import currency_of_format
from ade_engine.sheets.dates import BUILT_IN_DATES, fills_with_zeros, shows_date
from ade_engine.sheets.metadata import BEYOND_LIMIT, PADDED, UnreadSheet, no_sheet_with_cells
from ade_engine.sheets.safe_xml import Attributes, attribute, parse, plain_name
from ade_engine.sheets.zip_reader import ZipReader

MAIN_PART = "xl/workbook.xml"
PROPERTIES_PART = "docProps/core.xml"
LANGUAGE = re.compile(r"[A-Za-z]{2}-[A-Za-z]{2}")
UNREAD_KINDS = {
    "chartsheet": "chart",
    "dialogsheet": "dialog",
    "xlMacrosheet": "macro",
    "xlIntlMacrosheet": "macro",
}
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
    unread: list[UnreadSheet] = field(default_factory=list)
    epoch_1904: bool = False
    strings: str | None = None
    date_styles: BoolArray = field(default_factory=lambda: np.zeros(0, np.bool_))
    style_marks: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    marks: list[str] = field(default_factory=lambda: [""])
    """What a number format can say besides the value; `style_marks` are indexes of this list."""
    language: str | None = None

    def add(self, sheet: SheetPart, sheets_max: int) -> None:
        """Add a sheet with cells, unless there are too many."""
        if len(self.sheets) < sheets_max:
            self.sheets.append(sheet)
        else:
            self.unread.append(UnreadSheet(sheet.name, BEYOND_LIMIT))


def read_workbook_info(archive: ZipReader, sheets_max: int) -> WorkbookInfo:
    """Read the parts that describe the workbook."""
    main = _main_part(archive)
    targets = relations(archive, main)
    info = WorkbookInfo()
    _read_workbook(archive, main, targets, info, sheets_max)
    if not info.sheets:
        found = _sheets_by_name(archive)
        if found:
            info.unread.clear()  # they are not missing after all
        for sheet in found:
            info.add(sheet, sheets_max)
    if not info.sheets:
        raise no_sheet_with_cells(info.unread)
    info.strings = _one(archive, targets, "/sharedStrings", "xl/sharedStrings.xml")
    styles = _one(archive, targets, "/styles", "xl/styles.xml")
    if styles is not None:
        _read_styles(archive, styles, info)
    info.language = _language(archive)
    return info


def _language(archive: ZipReader) -> str | None:
    """Return the language of the document's properties, such as `de-DE`, if it has one."""
    found: list[str] = []
    inside = False

    def start(element: str, attributes: Attributes) -> None:
        nonlocal inside
        inside = plain_name(element) == "language"

    def text(data: str) -> None:
        if inside:
            found.append(data)

    if PROPERTIES_PART not in archive:
        return None
    try:
        parse([archive.read(PROPERTIES_PART)], start, text=text, where=PROPERTIES_PART)
    except UnreadableFile:
        return None  # nobody needs the properties to read the cells
    language = "".join(found).strip()
    return language if LANGUAGE.fullmatch(language) else None


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
            case "sheet":
                name = attributes.get("name", "")
                kind, path = targets.get(_relation_id(attributes), ("", ""))
                if kind.endswith("/worksheet") and path in archive:
                    hidden = attributes.get("state", "visible") != "visible"
                    info.add(SheetPart(name, hidden, path), sheets_max)
                else:
                    reason = UNREAD_KINDS.get(posixpath.basename(kind), "missing")
                    info.unread.append(UnreadSheet(name, reason))

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


def _read_styles(archive: ZipReader, part: str, info: WorkbookInfo) -> None:
    """Find the cell styles whose number format shows a date, leading zeros or a currency."""
    formats: dict[str, bool] = {}
    marks: dict[str, str] = {}
    styles: list[str] = []
    inside = {"numFmts": False, "cellXfs": False}

    def start(element: str, attributes: Attributes) -> None:
        name = plain_name(element)
        if name in inside:
            inside[name] = True
        elif name == "numFmt" and inside["numFmts"]:
            code = attribute(attributes, "formatCode")
            identity = attribute(attributes, "numFmtId")
            formats[identity] = shows_date(code)
            if not formats[identity] and (mark := _mark_of(code)) is not None:
                marks[identity] = mark
        elif name == "xf" and inside["cellXfs"] and len(styles) < STYLES_MAX:
            styles.append(attribute(attributes, "numFmtId", "0"))

    def end(element: str) -> None:
        name = plain_name(element)
        if name in inside:
            inside[name] = False

    parse([archive.read(part)], start, end, where=part)
    built_in = {str(number): True for number in BUILT_IN_DATES}
    known = built_in | formats
    info.date_styles = np.array([known.get(style, False) for style in styles], np.bool_)
    info.marks = ["", *sorted(set(marks.values()))]
    numbers = {mark: number for number, mark in enumerate(info.marks)}
    info.style_marks = np.array([numbers[marks.get(style, "")] for style in styles], np.int64)


def _mark_of(number_format: str) -> str | None:
    return PADDED if fills_with_zeros(number_format) else currency_of_format(number_format)

"""Make the workbook that `bench.sheets` reads: twelve mixed columns, laid out as Excel does."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

HEADERS = [
    *("Member ID", "First name", "Last name", "Email", "Department", "City"),
    *("Salary", "Rate", "Birth date", "Hired at", "Active", "Note"),
]
CHUNK_ROWS = 20_000

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'

PARTS = {
    "[Content_Types].xml": f"""<Types xmlns="{_PACKAGE}/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/>
<Override PartName="/xl/workbook.xml" ContentType="{_OFFICE}.sheet.main+xml"/>
<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_OFFICE}.worksheet+xml"/>
<Override PartName="/xl/styles.xml" ContentType="{_OFFICE}.styles+xml"/>
<Override PartName="/xl/sharedStrings.xml" ContentType="{_OFFICE}.sharedStrings+xml"/></Types>""",
    "_rels/.rels": f"""<Relationships xmlns="{_PACKAGE}/relationships">
<Relationship Id="rId1" Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/>
</Relationships>""",
    "xl/workbook.xml": f"""<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>
<sheet name="Members" sheetId="1" r:id="rId1"/></sheets></workbook>""",
    "xl/_rels/workbook.xml.rels": f"""<Relationships xmlns="{_PACKAGE}/relationships">
<Relationship Id="rId1" Type="{_RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/>
<Relationship Id="rId2" Type="{_RELATIONS}/styles" Target="styles.xml"/>
<Relationship Id="rId3" Type="{_RELATIONS}/sharedStrings" Target="sharedStrings.xml"/>
</Relationships>""",
    "xl/styles.xml": f"""<styleSheet xmlns="{_MAIN}">
<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>
<fills count="1"><fill><patternFill patternType="none"/></fill></fills>
<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>
<cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/>
<xf numFmtId="22" applyNumberFormat="1"/></cellXfs></styleSheet>""",
}

FIRST = ["Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Tony", "Frances", "Ken", "Radia"]
LAST = [
    "Lovelace",
    "Hopper",
    "Turing",
    "Dijkstra",
    "Liskov",
    "Knuth",
    "Hoare",
    "Allen",
    "O&apos;Hara",
]
DEPARTMENTS = ["Sales", "Research &amp; Development", "Finance", "Operations", "Legal", "People"]
CITIES = ["Montréal", "København", "Zürich", "São Paulo", "Kraków", "Osaka", "Lagos", "Wellington"]
_FIXED = [*HEADERS, *FIRST, *LAST, *DEPARTMENTS, *CITIES]


def write(path: Path, rows: int, seed: int = 7) -> None:
    """Write a workbook with this many rows below its header."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as book:
        for name, text in PARTS.items():
            book.writestr(name, _HEAD + text)
        with book.open("xl/sharedStrings.xml", "w", force_zip64=True) as part:
            for text in _shared_strings(rows):
                part.write(text.encode())
        with book.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as part:
            for text in _sheet(rows, seed):
                part.write(text.encode())


def _shared_strings(rows: int) -> Iterator[str]:
    """Give the repeated words, then for every row its member id and its e-mail address."""
    yield f'{_HEAD}<sst xmlns="{_MAIN}" uniqueCount="{len(_FIXED) + 2 * rows}">'
    yield "".join(f"<si><t>{text}</t></si>" for text in _FIXED)
    for start in range(0, rows, CHUNK_ROWS):
        number = np.arange(start, min(start + CHUNK_ROWS, rows))
        frame = pl.DataFrame({"n": number})
        member = pl.lit("ME") + (pl.col("n") + 100_000).cast(pl.String)
        email = pl.lit("member") + pl.col("n").cast(pl.String) + pl.lit("@example.org")
        yield "".join(
            frame.select(
                pl.format("<si><t>{}</t></si><si><t>{}</t></si>", member, email).str.join("")
            ).to_series()
        )
    yield "</sst>"


def _sheet(rows: int, seed: int) -> Iterator[str]:
    random = np.random.default_rng(seed)
    yield f'{_HEAD}<worksheet xmlns="{_MAIN}"><dimension ref="A1:L{rows + 1}"/><sheetData>'
    heads = (f'<c r="{chr(65 + i)}1" t="s"><v>{i}</v></c>' for i in range(len(HEADERS)))
    yield f'<row r="1" spans="1:12">{"".join(heads)}</row>'
    for start in range(0, rows, CHUNK_ROWS):
        size = min(CHUNK_ROWS, rows - start)
        yield _rows(np.arange(start, start + size), random)
    yield "</sheetData></worksheet>"


def _rows(number: np.ndarray, random: np.random.Generator) -> str:
    size, first = len(number), len(_FIXED)
    at = len(HEADERS)
    shared = {"A": first + 2 * number, "D": first + 2 * number + 1}
    for letter, words in (("B", FIRST), ("C", LAST), ("E", DEPARTMENTS), ("F", CITIES)):
        shared[letter] = at + random.integers(0, len(words), size)
        at += len(words)
    frame = pl.DataFrame(
        shared
        | {
            "row": number + 2,
            "G": np.round(random.normal(52_000, 9_000, size), 2),
            "H": random.random(size),
            "I": random.integers(20_000, 39_000, size),
            "J": np.round(40_000 + random.random(size) * 5_000, 6),
            "K": random.integers(0, 2, size),
            "L": random.integers(0, 4, size),
        }
    )

    def cell(letter: str, attributes: str) -> pl.Expr:
        return pl.format(f'<c r="{letter}{{}}"{attributes}><v>{{}}</v></c>', "row", letter)

    text = ' t="s"'
    note = pl.when(pl.col("L") == 0).then(
        pl.format('<c r="L{}" t="inlineStr"><is><t>see file {}</t></is></c>', "row", "A")
    )
    cells = [
        *(cell(letter, text) for letter in "ABCDEF"),
        cell("G", ""),
        cell("H", ""),
        cell("I", ' s="1"'),
        cell("J", ' s="2"'),
        cell("K", ' t="b"'),
        note.otherwise(pl.lit("")),
    ]
    row = pl.concat_str(
        pl.format('<row r="{}" spans="1:12">', "row"), *cells, pl.lit("</row>")
    ).str.join("")
    return str(frame.select(row).item())

"""What workbooks may hold, read by the fast reader and by the slow one."""

import datetime as dt
from itertools import chain
from pathlib import Path

import pytest
from openpyxl import Workbook
from tests.unit.engine.sheets.workbook_files import (
    MAIN,
    cells_of,
    fast_path_reads,
    read,
    read_both_ways,
    sheet_xml,
    sst,
    xlsx,
)

from ade_engine.errors import DamagedFile
from ade_engine.sheets.cells import CellError, CellKind
from ade_engine.sheets.workbook import open_workbook


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return tmp_path / "book.xlsx"


def test_every_kind_of_cell_is_distinguished(book: Path) -> None:
    rows = """<row r="2"><c r="B2" t="s"><v>1</v></c><c r="C2"><v>-1.5e3</v></c>
      <c r="D2" t="b"><v>1</v></c><c r="E2" s="1"><v>45000</v></c><c r="F2" t="e"><v>#REF!</v></c>
      <c r="G2"><f>A1+1</f></c><c r="H2" t="str"><f>A1</f><v>x</v></c>
      <c r="I2" t="inlineStr"><is><t>in</t></is></c><c r="J2" s="2"/><c r="K2" s="4"><v>1.5</v></c>
      <c r="L2" t="d"><v>2024-02-29T12:00:00</v></c><c r="AA2" s="3"><v>45000.5</v></c></row>"""
    xlsx(book, sheet_xml(rows), strings=sst("<t>zero</t>", "<t>one</t>"))
    assert fast_path_reads(book)
    assert read_both_ways(book) == {
        (2, 2): "one",
        (2, 3): -1500,
        (2, 4): True,
        (2, 5): dt.date(2023, 3, 15),
        (2, 6): CellError("#REF!"),
        (2, 8): "x",
        (2, 9): "in",
        (2, 11): 1.5,  # elapsed time is an amount, not a date
        (2, 12): dt.datetime(2024, 2, 29, 12),  # noqa: DTZ001
        (2, 27): dt.datetime(2023, 3, 15, 12),  # noqa: DTZ001
    }
    with open_workbook(book) as opened:
        (block,) = opened.sheets[0].blocks()
        assert block.columns[7].kinds.tolist() == [CellKind.NO_VALUE]
        assert 10 not in block.columns


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ('<c r="A1"><f>1/x</f><v></v></c>', CellKind.NO_VALUE),
        ('<c r="A1"><f>1/x</f><v/></c>', CellKind.NO_VALUE),
        ('<c r="A1"><f t="shared" si="0"/></c>', CellKind.NO_VALUE),
        ('<c r="A1" t="str"><f>x</f></c>', CellKind.NO_VALUE),
        ('<c r="A1" t="str"><f>""</f><v></v></c>', CellKind.EMPTY),
        ('<c r="A1"><v></v></c>', CellKind.EMPTY),
        ('<c r="A1" s="1"></c>', CellKind.EMPTY),
        ('<c r="A1" t="inlineStr"><is><t></t></is></c>', CellKind.EMPTY),
        ('<c r="A1" t="s"><v>0</v></c>', CellKind.EMPTY),  # a shared string without characters
        ('<c r="A1"><f t="shared" si="0"/><v>7</v></c>', CellKind.NUMBER),
        ('<c r="A1" t="b"><v>0</v></c>', CellKind.BOOL),
    ],
)
def test_a_formula_without_a_value_differs_from_an_empty_cell(
    book: Path, cell: str, kind: CellKind
) -> None:
    xlsx(book, sheet_xml(f'<row r="1">{cell}<c r="B1"><v>1</v></c></row>'), strings=sst("<t/>"))
    read_both_ways(book)
    with open_workbook(book) as opened:
        (block,) = opened.sheets[0].blocks()
        assert block.column(1).kinds.tolist() == [kind]


@pytest.mark.parametrize(
    ("epoch", "serial", "style", "meant"),
    [
        ("", "1", "1", dt.date(1900, 1, 1)),
        ("", "59", "1", dt.date(1900, 2, 28)),
        ("", "61", "1", dt.date(1900, 3, 1)),
        ("", "0.25", "1", dt.time(6)),
        ("", "2958465", "1", dt.date(9999, 12, 31)),
        ("", "2958466", "1", 2958466),
        ("", "-1", "1", -1),
        ('date1904="1"', "0", "1", dt.time()),
        ('date1904="1"', "1", "1", dt.date(1904, 1, 2)),
        ('date1904="true"', "43538", "1", dt.date(2023, 3, 15)),
        ('date1904="1"', "0.5", "1", dt.time(12)),
        ('date1904="0"', "45000", "1", dt.date(2023, 3, 15)),
    ],
)
def test_serial_numbers_are_dates_of_the_workbooks_system(
    book: Path, epoch: str, serial: str, style: str, meant: object
) -> None:
    rows = f'<row r="1"><c r="A1" s="{style}"><v>{serial}</v></c></row>'
    xlsx(book, sheet_xml(rows), workbook=f"<workbookPr {epoch}/>")
    assert read_both_ways(book) == {(1, 1): meant}


def test_an_extension_does_not_undo_the_date_system(book: Path) -> None:
    again = '<workbookPr date1904="1"/><ext><x15:workbookPr xmlns:x15="u" x="1"/></ext>'
    xlsx(book, sheet_xml('<row r="1"><c r="A1" s="1"><v>1</v></c></row>'), workbook=again)
    assert read(book) == {(1, 1): dt.date(1904, 1, 2)}


def test_shared_strings_are_joined_unescaped_and_without_pronunciation(book: Path) -> None:
    items = (
        '<r><t xml:space="preserve">rich </t></r><r><rPr><b/></rPr><t>text</t></r>',
        "<t>漢字</t><rPh sb='0' eb='2'><t>かんじ</t></rPh><phoneticPr fontId='1'/>",
        "<t>a &amp;lt; b &#x41;&#66; &quot;</t>",
        "<t>&amp;</t>",
        "<t>line_x000D_\nnext _x005F_x0041_</t>",
        "<t>a > b</t>",
        "<t> spaced </t>",
    )
    cells = "".join(f'<row r="{n}"><c r="A{n}" t="s"><v>{n - 1}</v></c></row>' for n in range(1, 8))
    xlsx(book, sheet_xml(cells), strings=sst(*items).replace("'", '"'))
    expected = [
        "rich text",
        "漢字",
        'a &lt; b AB "',
        "&",
        "line\r\nnext _x0041_",
        "a > b",
        " spaced ",
    ]
    assert list(read_both_ways(book).values()) == expected
    with_comment = sst(*items).replace("<si>", "<!-- slow --><si>", 1)
    xlsx(book, sheet_xml(cells), strings=with_comment)
    assert list(read(book).values()) == expected


def test_a_shared_string_that_is_not_there_is_damage(book: Path) -> None:
    xlsx(book, sheet_xml('<row r="1"><c r="A1" t="s"><v>5</v></c></row>'), strings=sst("<t>x</t>"))
    with pytest.raises(DamagedFile):
        read(book)


def test_what_surrounds_the_cells_is_known_after_reading(book: Path) -> None:
    rows = """<row r="1" hidden="1"><c r="A1"><v>1</v></c></row>
      <row r="2"><c r="A2"><v>2</v></c></row>
      <row r="3" hidden="true"/><row r="9" spans="1:1"/>"""
    columns = '<cols><col min="2" max="3" hidden="1"/><col min="5" max="5" hidden="0"/></cols>'
    merged = '<mergeCells><mergeCell ref="A1:B2"/><mergeCell ref="broken"/></mergeCells>'
    xlsx(book, sheet_xml(rows, before=columns, after=merged), sheet_xml(""), states=("", "hidden"))
    read_both_ways(book)
    with open_workbook(book) as opened:
        first, second = opened.sheets
        first.scan()
        assert [str(area) for area in first.merged] == ["A1:B2"]
        assert first.hidden_rows.tolist() == [1, 3]
        assert first.hidden_columns == {2, 3}
        assert first.notes == ["merged_range_invalid"]
        assert (first.height, first.width) == (2, 1)
        assert (second.name, second.hidden) == ("S2", True)
        assert cells_of(second) == {}


# --- XML as other programs write it ---------------------------------------------------------------

PLAIN = '<row r="3"><c r="B3" t="s"><v>0</v></c><c r="C3"><v>2</v></c></row>'
MEANT = {(3, 2): "text", (3, 3): 2}


@pytest.mark.parametrize(
    ("rows", "plain"),
    [
        (PLAIN, True),
        (PLAIN.replace("><", ">\n  <"), True),
        (PLAIN.replace("<v>2</v>", "<f>1 > 0</f><v>2</v>"), True),
        (PLAIN.replace('"', "'"), False),
        (PLAIN.replace('<c r="C3">', "<c>"), False),
        (PLAIN.replace(' r="B3"', "").replace(' r="C3"', "").replace("<c ", "<c/><c "), False),
        (PLAIN.replace('<row r="3">', "<row/><row></row><row>"), False),
        (PLAIN.replace("<row ", "<!-- note --><row "), False),
        (PLAIN.replace("<v>2</v>", "<v><![CDATA[2]]></v>"), False),
        (PLAIN.replace("<v>2</v>", "<v> 2 </v>"), False),
        (PLAIN.replace('r="3">', 'r="3" spans="1:3" x14ac:dyDescent="0.25">'), True),
        (PLAIN.replace('<c r="B3" t="s">', '<c t="s" r="B3">'), False),
        (PLAIN.replace('<row r="3">', '<row spans="1:3" r="3">'), False),
    ],
)
def test_cells_are_read_however_they_are_written(book: Path, rows: str, plain: bool) -> None:
    namespace = ' xmlns:x14ac="urn:x">'
    xml = sheet_xml(rows).replace(">", namespace, 1)
    xlsx(book, xml, strings=sst("<t>text</t>"))
    assert read(book) == MEANT
    assert read_both_ways(book) == MEANT
    assert fast_path_reads(book) or not plain


def test_prefixes_encodings_and_strict_names_do_not_matter(book: Path) -> None:
    prefixed = f"""<x:worksheet xmlns:x="{MAIN}"><x:sheetData><x:row r="3"><x:c r="B3" t="s"><x:v>0
</x:v></x:c><x:c r="C3"><x:v>2</x:v></x:c></x:row></x:sheetData></x:worksheet>"""
    declared = '<?xml version="1.0" encoding="UTF-16"?>'
    for sheet in (
        prefixed.encode(),
        (declared + sheet_xml(PLAIN)).encode("utf-16"),
        b"\xef\xbb\xbf" + sheet_xml(PLAIN).encode(),
        sheet_xml(PLAIN).replace("schemas.openxmlformats.org", "purl.oclc.org/ooxml").encode(),
        b'<?xml version="1.0" encoding="iso-8859-1"?>' + sheet_xml(PLAIN).encode(),
    ):
        strings = (declared + sst("<t>text</t>")).encode("utf-16")
        xlsx(book, sheet, strings=strings)
        assert read(book) == MEANT


def test_parts_may_have_other_names_slashes_and_no_relations(book: Path) -> None:
    root = "http://purl.oclc.org/ooxml/officeDocument/relationships"
    relations = f"""<Relationships xmlns="u"><Relationship Id="rId1" Type="{root}/worksheet"
      Target="/xl/other/Cells.xml"/><Relationship Id="rId2" Type="{root}/chartsheet"
      Target="chartsheets/c.xml"/></Relationships>"""
    parts = {
        "xl/_rels/workbook.xml.rels": relations.encode(),
        "xl\\other\\cells.XML": sheet_xml('<row r="1"><c r="A1"><v>7</v></c></row>').encode(),
    }
    xlsx(book, sheet_xml(""), sheet_xml(""), parts=parts)
    with open_workbook(book) as opened:
        assert [sheet.name for sheet in opened.sheets] == ["S1"]
        assert cells_of(opened.sheets[0]) == {(1, 1): 7}


def test_rich_inline_text_is_joined(book: Path) -> None:
    text = "<is><r><t>a</t></r><r><rPr><b/></rPr><t>b</t></r><rPh><t>no</t></rPh></is>"
    xlsx(book, sheet_xml(f'<row r="1"><c r="A1" t="inlineStr">{text}<v>no</v></c></row>'))
    assert read(book) == {(1, 1): "ab"}


def test_a_cell_far_away_costs_nothing(book: Path) -> None:
    rows = """<row r="1"><c r="A1"><v>1</v></c></row>
      <row r="1048576"><c r="A1048576"><v>2</v></c><c r="XFD1048576"><v>3</v></c></row>"""
    xlsx(book, sheet_xml(rows))
    assert read_both_ways(book) == {(1, 1): 1, (1048576, 1): 2, (1048576, 16384): 3}
    with open_workbook(book) as opened:
        heights = [block.height for block in opened.sheets[0].blocks()]
    assert heights == [1, 1]


def test_blocks_are_given_for_the_rows_that_are_asked_for(book: Path) -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in range(1, 40_001))
    xlsx(book, sheet_xml(rows))
    with open_workbook(book) as opened:
        sheet = opened.sheets[0]
        found = [row for block in sheet.blocks(17_000, 17_002) for row, _ in block.values()]
        assert found == [17_000, 17_001, 17_002]
        whole = [block.columns[1].numbers.tolist() for block in sheet.blocks()]
        assert list(chain(*whole)) == list(range(1, 40_001))
        assert max(map(len, whole)) <= 32_768


def test_many_styles_are_kept_apart(book: Path) -> None:
    cells = "".join(
        f'<row r="{n}"><c r="A{n}" s="{n}" t="str"><v>{n}</v></c></row>' for n in range(1, 6_001)
    )
    xlsx(book, sheet_xml(cells))
    assert read_both_ways(book) == {(n, 1): str(n) for n in range(1, 6_001)}


def test_number_formats_say_more_than_the_numbers(tmp_path: Path) -> None:
    book = Workbook()
    sheet = book.active
    for row, code in enumerate(("00000", "[$€-407] 0.00", '"$"0', "0.00", "000-00", "yyyy"), 1):
        sheet.cell(row, row, 7).number_format = code
    book.save(tmp_path / "marks.xlsx")
    read_both_ways(tmp_path / "marks.xlsx")
    with open_workbook(tmp_path / "marks.xlsx") as opened:
        marks = opened.sheets[0].scan().format_marks
    assert marks == {1: {"padded"}, 2: {"€"}, 3: {"$"}, 5: {"padded"}}

"""HTML pages and SpreadsheetML that are named like workbooks."""

import datetime as dt
from pathlib import Path

import pytest
from tests.unit.engine.sheets.workbook_files import cells_of, read

from ade_engine.errors import DamagedFile
from ade_engine.sheets.cells import CellError
from ade_engine.sheets.workbook import open_workbook


def test_the_tables_of_a_page_come_one_under_another(tmp_path: Path) -> None:
    path = tmp_path / "page.xls"
    path.write_text(
        """<html><head><title>no</title><style>td {}</style></head><body>text outside
        <table><tr><th colspan=2>Head &amp; more</th><th>C</th></tr>
        <tr><td rowspan="2">tall</td><td>1</td><td>2<br>3</td></tr><tr><td>4<td>5</tr></table>
        <table><tr><td></td><td>last</td></tr></table></body></html>"""
    )
    assert read(path) == {
        (1, 1): "Head & more",
        (1, 3): "C",
        (2, 1): "tall",
        (2, 2): "1",
        (2, 3): "2\n3",
        (3, 2): "4",
        (3, 3): "5",
        (5, 2): "last",
    }
    with open_workbook(path) as book:
        book.sheets[0].scan()
        assert [str(area) for area in book.sheets[0].merged] == ["A1:B1", "A2:A3"]


OLD = """<?xml version="1.0"?><?mso-application progid="Excel.Sheet"?>
<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"
 xmlns:ss="urn:schemas-microsoft-com:office:spreadsheet">
<Worksheet ss:Name="One"><Table><Column ss:Index="2" ss:Hidden="1"/>
<Row><Cell ss:MergeAcross="1"><Data ss:Type="String">a</Data></Cell></Row>
<Row ss:Index="4" ss:Hidden="1"><Cell ss:Index="3"><Data ss:Type="Number">1.5</Data></Cell>
<Cell><Data ss:Type="DateTime">2024-02-29T00:00:00.000</Data></Cell>
<Cell><Data ss:Type="Boolean">1</Data></Cell><Cell><Data ss:Type="Error">#N/A</Data></Cell></Row>
</Table></Worksheet>
<Worksheet ss:Name="Two"><Table><Row><Cell><Data ss:Type="String">b</Data></Cell></Row></Table>
</Worksheet></Workbook>"""


def test_the_xml_of_2003_is_a_workbook(tmp_path: Path) -> None:
    path = tmp_path / "old.xls"
    path.write_text(OLD)
    with open_workbook(path) as book:
        assert book.format == "xml"
        one, two = book.sheets
        assert (one.name, two.name) == ("One", "Two")
        assert cells_of(one) == {
            (1, 1): "a",
            (4, 3): 1.5,
            (4, 4): dt.date(2024, 2, 29),
            (4, 5): True,
            (4, 6): CellError("#N/A"),
        }
        assert [str(area) for area in one.merged] == ["A1:B1"]
        assert one.hidden_rows.tolist() == [4]
        assert one.hidden_columns == {2}
        assert cells_of(two) == {(1, 1): "b"}


def test_places_that_go_back_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "old.xls"
    path.write_text(OLD.replace('ss:Index="4"', 'ss:Index="1"'))
    with pytest.raises(DamagedFile):
        read(path)

"""XML with random damage gives rows or a clear error, and both readers agree on the rows."""

import random
from pathlib import Path
from typing import Any

import pytest
from tests.unit.engine.sheets.workbook_files import cells_of, sheet_xml, sst, xlsx

from ade_engine.errors import UnreadableFile
from ade_engine.sheets.fast_path_errors import FastPathUnsupported
from ade_engine.sheets.workbook import open_workbook

ROWS = "".join(
    f"""<row r="{n}"><c r="A{n}" t="s"><v>{n % 2}</v></c><c r="B{n}" s="1"><v>4500{n}</v>
</c><c r="C{n}"><f>A1*2</f><v>-1.5</v></c><c r="D{n}" t="inlineStr"><is><t>a &amp; b</t></is></c>
<c r="E{n}" t="b"><v>1</v></c><c r="AB{n}" t="e"><v>#N/A</v></c></row>"""
    for n in range(1, 4)
)
PIECES = [
    b"<",
    b">",
    b'"',
    b"/",
    b"&",
    b"<c",
    b"</c>",
    b"<v>",
    b"r=",
    b" ",
    b"9",
    b"A",
    b"\xff",
    b"<!--",
]


def mutated(xml: bytes, chance: random.Random) -> bytes:
    """Change a few bytes."""
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(xml))
        cut = chance.choice([0, 0, 1, 5])
        xml = xml[:at] + chance.choice([b"", *PIECES]) + xml[at + cut :]
    return xml


def outcome(path: Path, way: int) -> Any:
    """Read with one reader: the cells, or the error."""
    try:
        with open_workbook(path) as book:
            sheet = book.sheets[0]
            sheet._reads = [sheet._reads[way]]
            return cells_of(sheet)
    except FastPathUnsupported:
        return "not plain"
    except UnreadableFile as error:
        return error.code


@pytest.mark.parametrize("seed", [*range(80), 1473, 1553, 2373, 2485, 2747])
def test_damage_is_noticed_or_harmless(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    sheet, strings = sheet_xml(ROWS).encode(), sst("<t>one</t>", "<t>two</t>").encode()
    if seed % 4:
        sheet = mutated(sheet, chance)
    else:
        strings = mutated(strings, chance)
    path = xlsx(tmp_path / "book.xlsx", sheet, strings=strings)
    fast, slow = outcome(path, 0), outcome(path, 1)
    assert isinstance(fast, dict | str)
    if isinstance(fast, dict) and isinstance(slow, dict):
        assert fast == slow

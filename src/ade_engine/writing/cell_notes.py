"""The notes of a sheet: their texts, and the boxes that show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ade_engine.sheets.coordinates import a1
from ade_engine.writing.fixed_parts import HEAD, MAIN
from ade_engine.writing.text_xml import escape_text

# A drawing numbers its shapes in groups of 1,024, and a sheet has one group. Programs become slow
# with many more notes.
NOTES_MAX = 1_000
NOTE_CHARS_MAX = 1_000
AUTHOR = "ADE"
_LINE_CHARS = 45
_LINE_POINTS = 14


@dataclass(frozen=True, order=True)
class CellNote:
    """A note at a cell."""

    row: int
    column: int
    text: str


def notes_xml(notes: Iterable[CellNote]) -> str:
    """Return the part with the texts of a sheet's notes."""
    listed = "".join(
        f'<comment ref="{a1(note.row, note.column)}" authorId="0"><text><t xml:space="preserve">'
        f"{escape_text(note.text)}</t></text></comment>"
        for note in notes
    )
    return (
        f'{HEAD}<comments xmlns="{MAIN}"><authors><author>{AUTHOR}</author></authors>'
        f"<commentList>{listed}</commentList></comments>"
    )


def drawing_xml(notes: Sequence[CellNote], sheet: int) -> str:
    """Return the drawing with the boxes of a sheet's notes, hidden until a cell is pointed at."""
    boxes = "".join(_box(note, sheet * 1024 + number) for number, note in enumerate(notes, 1))
    return (
        '<xml xmlns:v="urn:schemas-microsoft-com:vml"'
        ' xmlns:o="urn:schemas-microsoft-com:office:office"'
        ' xmlns:x="urn:schemas-microsoft-com:office:excel">'
        f'<o:shapelayout v:ext="edit"><o:idmap v:ext="edit" data="{sheet}"/></o:shapelayout>'
        '<v:shapetype id="_x0000_t202" coordsize="21600,21600" o:spt="202"'
        ' path="m,l,21600r21600,l21600,xe"><v:stroke joinstyle="miter"/>'
        '<v:path gradientshapeok="t" o:connecttype="rect"/></v:shapetype>'
        f"{boxes}</xml>"
    )


def _box(note: CellNote, number: int) -> str:
    lines = sum(1 + len(line) // _LINE_CHARS for line in note.text.split("\n"))
    row, column = note.row - 1, note.column - 1
    # From and to: column, pixels, row, pixels.
    anchor = f"{column + 1}, 15, {max(row - 1, 0)}, 4, {column + 4}, 30, {row + lines + 1}, 4"
    return (
        f'<v:shape id="_x0000_s{number}" type="#_x0000_t202" style="position:absolute;'
        f'width:260pt;height:{_LINE_POINTS * (lines + 1)}pt;z-index:1;visibility:hidden"'
        ' fillcolor="#ffffe1" o:insetmode="auto"><v:fill color2="#ffffe1"/>'
        '<v:shadow on="t" color="black" obscured="t"/><v:path o:connecttype="none"/>'
        '<v:textbox style="mso-direction-alt:auto"><div style="text-align:left"></div></v:textbox>'
        '<x:ClientData ObjectType="Note"><x:MoveWithCells/><x:SizeWithCells/>'
        f"<x:Anchor>{anchor}</x:Anchor><x:AutoFill>False</x:AutoFill><x:Row>{row}</x:Row>"
        f"<x:Column>{column}</x:Column></x:ClientData></v:shape>"
    )

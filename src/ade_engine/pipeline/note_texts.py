"""Write the notes of cells with issues: what is wrong, and what was in the input."""

from __future__ import annotations

from dataclasses import dataclass, field

from ade_engine.package.issues import Severity
from ade_engine.pipeline.issue_log import IssueLine
from ade_engine.writing.cell_notes import NOTE_CHARS_MAX, NOTES_MAX, CellNote

QUOTED_CHARS_MAX = 100


def note_text(line: IssueLine, source: str, value: object = None) -> str:
    """Return the text of a note: severity, message and rule, the input's cell and its value."""
    message = line.message or "The message is withheld: it is not a text of the package."
    was = f": {_quoted(value)}" if value is not None else ""
    where = f"\nInput {source}{was}" if source else ""
    return f"{line.severity.capitalize()}: {message} ({line.code}){where}"


def _quoted(value: object) -> str:
    text = str(value)
    if len(text) > QUOTED_CHARS_MAX:
        text = text[:QUOTED_CHARS_MAX] + "…"
    return f"“{text}”"


@dataclass
class SheetNotes:
    """Collect the notes of a sheet; errors come before warnings where not all have room."""

    _texts: dict[Severity, dict[tuple[int, int], list[str]]] = field(default_factory=dict)
    omitted: int = 0

    def has_room(self, severity: Severity) -> bool:
        """Return whether another cell with an issue of a severity gets a note."""
        return len(self._texts.get(severity, ())) < NOTES_MAX

    def add(self, row: int, column: int, severity: Severity, text: str) -> None:
        """Add a note at a cell, which may have one already."""
        self._texts.setdefault(severity, {}).setdefault((row, column), []).append(text)

    def notes(self) -> list[CellNote]:
        """Return the notes, as many as a sheet may have."""
        merged: dict[tuple[int, int], list[str]] = {}
        for severity in Severity:
            for cell, texts in self._texts.get(severity, {}).items():
                merged.setdefault(cell, []).extend(texts)
        self.omitted += max(len(merged) - NOTES_MAX, 0)
        return [
            CellNote(row, column, _cut("\n\n".join(texts)))
            for (row, column), texts in list(merged.items())[:NOTES_MAX]
        ]


def _cut(text: str) -> str:
    return text if len(text) <= NOTE_CHARS_MAX else text[: NOTE_CHARS_MAX - 1] + "…"

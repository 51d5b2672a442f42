"""The reference page names every error, limit and kind of cell."""

import re
from dataclasses import fields
from pathlib import Path

from ade_engine.errors import EngineError, UnreadableFile
from ade_engine.sheets.cells import CellKind
from ade_engine.sheets.read_limits import ReadLimits
from ade_engine.writing.zip_writer import OutputTooLarge

PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "spreadsheets.md").read_text()


def _first_column(heading: str) -> list[str]:
    part = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)


def test_every_error_is_described() -> None:
    kinds: list[type[EngineError]] = [UnreadableFile, OutputTooLarge]
    kinds += UnreadableFile.__subclasses__()
    ours = {kind.code for kind in kinds if kind.__module__.startswith("ade_engine.")}
    assert set(_first_column("Errors")) == ours


def test_every_limit_is_described() -> None:
    assert _first_column("Limits") == [field.name for field in fields(ReadLimits)]


def test_every_kind_of_cell_is_described() -> None:
    assert _first_column("Cells") == [kind.name for kind in CellKind]

"""Write small workbooks and run packages on them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from openpyxl import Workbook, load_workbook
from tests.unit.engine.package.packages import write_package

from ade_engine.entry.normalize import NormalizeRequest, normalize


def write_workbook(path: Path, **sheets: Iterable[Any]) -> Path:
    """Write sheets of rows."""
    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    path.parent.mkdir(parents=True, exist_ok=True)
    book.save(path)
    return path


@dataclass(frozen=True)
class Ran:
    """The files that a run wrote."""

    folder: Path
    summary: dict[str, Any]

    @property
    def artifact(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "artifact.json").read_text())
        return found

    def stage(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.artifact["events"] if event["stage"] == name]

    @property
    def issues(self) -> dict[tuple[str, str], list[str]]:
        return {
            (issue["field"], issue["code"]): issue["ranges"]
            for event in self.stage("validate")
            for issue in event["issues"]
        }

    @property
    def output(self) -> dict[str, list[list[Any]]]:
        book = self.book
        return {
            sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)]
            for sheet in book
            if sheet.title != "Issues"
        }

    @property
    def book(self) -> Workbook:
        return load_workbook(self.folder / "normalized.xlsx")

    @property
    def rows(self) -> list[list[Any]]:
        (rows,) = self.output.values()
        return rows[1:]


def run(folder: Path, rows: Iterable[Any], **files: str) -> Ran:
    """Run a package on a workbook with one sheet."""
    return run_on(folder, write_workbook(folder / "input.xlsx", Data=rows), **files)


def run_on(folder: Path, source: Path, **files: str) -> Ran:
    """Run a package on a file."""
    return run_request(
        folder, NormalizeRequest(source, folder / "package", folder / "out", "job-1"), files
    )


def run_request(folder: Path, request: NormalizeRequest, files: dict[str, str]) -> Ran:
    """Run a package as a request says, but without timings."""
    write_package(folder / "package", **files)
    return Ran(folder / "out", normalize(replace(request, timings=False)))

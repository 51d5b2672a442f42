"""Test a config package with pytest: the fixture `ade_run`.

pytest finds the fixture by itself where ADE is installed. The package under test is the nearest
folder above the test file that holds `columns/`.

    def test_the_roster(ade_run):
        result = ade_run("samples/roster.csv")
        assert result.evaluation == "complete"
        assert result.rows[0]["member_id"] == "RC100001"
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class RunResult:
    """The result of a run, in forms that tests can compare."""

    folder: Path
    labels: dict[str, str]
    artifact: dict[str, Any]

    @property
    def evaluation(self) -> str:
        """Return `complete`, `partial` or `unusable`."""
        return str(self.artifact["evaluation"])

    @property
    def summary(self) -> dict[str, Any]:
        """Return the artifact's counts."""
        found: dict[str, Any] = self.artifact["summary"]
        return found

    @property
    def skipped(self) -> dict[str, dict[str, int]]:
        """Return what was left out: {sheets, tables, columns or rows: {reason: count}}."""
        found: dict[str, dict[str, int]] = self.summary["skipped"]
        return found

    def stage(self, name: str) -> list[dict[str, Any]]:
        """Return the artifact's events of one stage, such as `mapping`."""
        return [event for event in self.artifact["events"] if event["stage"] == name]

    @property
    def columns(self) -> dict[str, str]:
        """Return {field: letters of its column}, from the first table that has the field."""
        found: dict[str, str] = {}
        for table in self.stage("mapping"):
            for column in table["columns"]:
                if column["target"]:
                    found.setdefault(column["target"], column["raw"]["column"])
        return found

    @property
    def unmapped(self) -> dict[str, str]:
        """Return {letters of a column: reason why it is unmapped}."""
        return {
            column["raw"]["column"]: column["reason"]
            for table in self.stage("mapping")
            for column in table["columns"]
            if column["reason"]
        }

    @property
    def missing(self) -> list[str]:
        """List the required fields that are missing in any table."""
        tables = self.stage("mapping")
        return list(dict.fromkeys(name for table in tables for name in table["missing"]))

    @property
    def changed(self) -> dict[str, int]:
        """Count the changed cells by field."""
        counts: dict[str, int] = {}
        for table in self.stage("transform"):
            for name, count in table["changed"].items():
                counts[name] = counts.get(name, 0) + count
        return counts

    @property
    def issues(self) -> dict[tuple[str, str], list[str]]:
        """Return {(field, code): ranges in the source}."""
        found: dict[tuple[str, str], list[str]] = {}
        for table in self.stage("validate"):
            for issue in table["issues"]:
                found.setdefault((issue["field"], issue["code"]), []).extend(issue["ranges"])
        return found

    @cached_property
    def _output(self) -> tuple[list[str], list[list[object]]]:
        from ade_engine.sheets.workbook import open_workbook

        header: list[str] = []
        rows: list[list[object]] = []
        with open_workbook(self.folder / "normalized.xlsx") as book:
            issues = self.stage("output")[0].get("issues_sheet")
            for sheet in book.sheets:
                if sheet.name == issues:
                    continue
                sheet.scan()
                for block in sheet.blocks():
                    for number, cells in block.values():
                        row = [cells.get(column) for column in range(1, sheet.width + 1)]
                        if number == 1:
                            header = header or [str(text) for text in row]
                        else:
                            rows.append(row)
        return header, rows

    @property
    def headers(self) -> list[str]:
        """Return the header of the output."""
        return self._output[0]

    @property
    def rows(self) -> list[dict[str, object]]:
        """Return the rows of the output: {field, or header of a kept column: value}."""
        header, rows = self._output
        names = [self.labels.get(text, text) for text in header]
        return [dict(zip(names, row, strict=False)) for row in rows]


@dataclass(frozen=True)
class AdeRun:
    """Run the package under test: call it with a file, with rows, or with `text=`."""

    folder: Path
    scratch: Path

    def __call__(
        self,
        source: str | Path | Iterable[Sequence[object]] | None = None,
        *,
        text: str | None = None,
        config: str | Path | None = None,
    ) -> RunResult:
        """Normalise a file (its path within the package), rows of values, or the text of a CSV."""
        from ade_engine.entry.normalize import NormalizeRequest, normalize
        from ade_engine.package.author_errors import AuthorError
        from ade_engine.package.config_package import load_package

        package = self.folder if config is None else Path(config)
        number = len(list(self.scratch.glob("run-*")))
        output = self.scratch / f"run-{number}"
        output.mkdir()
        request = NormalizeRequest(
            self._input(source, text, output), package, output / "out", timings=False
        )
        try:
            normalize(request)
        except AuthorError as failed:
            raise failed from failed.raised  # the author's own test may show values
        with load_package(package) as loaded:
            labels = {rules.label: rules.name for rules in loaded.fields}
        artifact = json.loads((output / "out" / "artifact.json").read_text(encoding="utf-8"))
        return RunResult(output / "out", labels, artifact)

    def _input(
        self, source: str | Path | Iterable[Sequence[object]] | None, text: str | None, folder: Path
    ) -> Path:
        if isinstance(source, str | Path):
            return self.folder / source
        made = folder / "input.csv"
        if text is not None:
            made.write_text(text, encoding="utf-8")
        else:
            with made.open("w", encoding="utf-8", newline="") as stream:
                csv.writer(stream).writerows(source or [])
        return made


@pytest.fixture
def ade_run(request: pytest.FixtureRequest, tmp_path: Path) -> AdeRun:
    """Run the config package that the test belongs to."""
    return AdeRun(_package_folder(request.path), tmp_path)


def _package_folder(test: Path) -> Path:
    for folder in test.parents:
        if (folder / "columns").is_dir():
            return folder
    return test.parent

"""Read `config.toml`: every setting has a default, and an unknown setting is an error."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ade_engine.package.author_errors import PackageProblem, SourceLocation
from ade_engine.package.notation import Preference
from ade_engine.package.source_code import SETTINGS_FILE

OUTPUT_FORMATS = ("xlsx", "csv", "parquet", "jsonl")


@dataclass(frozen=True)
class OutputSettings:
    """What is written: section `[output]`."""

    sheet: str = field(default="Normalized", metadata={"says": "name of the sheet in the output"})
    unmapped: str = field(
        default="drop",
        metadata={
            "says": "unmapped columns are left out, or kept at the end under their own header",
            "one_of": ("drop", "keep"),
        },
    )
    tables: str = field(
        default="stack",
        metadata={
            "says": "several tables go below each other in one sheet, or each into its own sheet",
            "one_of": ("stack", "sheets"),
        },
    )
    outputs: tuple[str, ...] = field(
        default=("xlsx",),
        metadata={"says": "formats in which the rows are written", "each_one_of": OUTPUT_FORMATS},
    )
    source: bool = field(
        default=False,
        metadata={"says": "add columns with the sheet and the row that each row comes from"},
    )
    notes: str = field(
        default="values",
        metadata={
            "says": "notes at cells with issues quote what was in the input, or name the rule only,"
            " or there are none",
            "one_of": ("values", "rules", "off"),
        },
    )
    csv_formulas: str = field(
        default="quote",
        metadata={
            "says": "texts in CSV files that a program might take for a formula begin with `'`, or"
            " are written as they are",
            "one_of": ("quote", "keep"),
        },
    )


@dataclass(frozen=True)
class MappingSettings:
    """How columns are mapped to fields: section `[mapping]`."""

    threshold: float = field(
        default=0.5, metadata={"says": "minimum score of a column for a field", "range": (0, 100)}
    )
    margin: float = field(
        default=0.05,
        metadata={
            "says": "a column is ambiguous if a free field scores this close; 0 decides by order",
            "range": (0, 100),
        },
    )
    sample_rows: int = field(
        default=1000,
        metadata={"says": "number of data rows that detectors receive", "range": (1, 100_000)},
    )


@dataclass(frozen=True)
class ReadingSettings:
    """What is read: section `[reading]`."""

    sheets: tuple[str, ...] = field(
        default=(),
        metadata={"says": "names of the sheets to read, with `*` and `?`; an empty list reads all"},
    )
    hidden_sheets: bool = field(default=False, metadata={"says": "read hidden sheets"})
    hidden_rows: bool = field(default=True, metadata={"says": "read hidden rows"})
    hidden_columns: bool = field(default=True, metadata={"says": "read hidden columns"})
    decimal: str = field(
        default="auto",
        metadata={
            "says": "decimal sign of numbers written as text, where a column does not prove it;"
            ' `"auto"` reports such a column as doubtful',
            "one_of": ("auto", ".", ","),
        },
    )
    day_first: bool | str = field(
        default="auto",
        metadata={
            "says": "read 01/02/2024 as 1 February, where a column does not prove the order;"
            ' `"auto"` reports such a column as doubtful',
            "one_of": ("auto", True, False),
        },
    )

    @property
    def preference(self) -> Preference:
        """Return how dates and numbers are read where a column does not tell."""
        return Preference(
            None if self.decimal == "auto" else self.decimal,
            None if isinstance(self.day_first, str) else self.day_first,
        )


@dataclass(frozen=True)
class RunSettings:
    """When a run is a failure: section `[run]`."""

    fail_on: str = field(
        default="unusable",
        metadata={
            "says": "which result is a failure; each word includes those before it",
            "one_of": ("never", "unusable", "partial", "errors", "warnings"),
        },
    )


@dataclass(frozen=True)
class PackageSettings:
    """All of `config.toml`; `author` is the author's own section, passed on as `ctx.settings`."""

    name: str = ""
    description: str = ""
    output: OutputSettings = OutputSettings()
    mapping: MappingSettings = MappingSettings()
    reading: ReadingSettings = ReadingSettings()
    run: RunSettings = RunSettings()
    author: Mapping[str, Any] = field(default_factory=dict)


SECTIONS: dict[str, type] = {
    "output": OutputSettings,
    "mapping": MappingSettings,
    "reading": ReadingSettings,
    "run": RunSettings,
}


def read_settings(folder: Path, problems: list[PackageProblem]) -> PackageSettings:
    """Read `config.toml` if it exists, and report settings that are unknown or not allowed."""
    path = folder / SETTINGS_FILE
    if not path.is_file():
        return PackageSettings(name=folder.name)
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except (OSError, ValueError) as error:
        line = getattr(error, "lineno", None)
        message = "the file is not valid TOML."
        problems.append(
            PackageProblem("settings_unreadable", message, SourceLocation(SETTINGS_FILE, line))
        )
        return PackageSettings(name=folder.name)
    return _Reader(text, problems).settings(values, folder.name)


@dataclass(frozen=True)
class _Reader:
    text: str
    problems: list[PackageProblem]

    def settings(self, values: dict[str, Any], name: str) -> PackageSettings:
        sections = {
            key: self.section(key, kind, values.pop(key, {})) for key, kind in SECTIONS.items()
        }
        author = values.pop("author", {})
        words = {key: values.pop(key, "") for key in ("name", "description")}
        for key in values:
            self.unknown(key, (*SECTIONS, "author", *words))
        for key, value in words.items():
            if not isinstance(value, str):
                self.refuse(key, f"{key} must be a string.")
        return PackageSettings(
            name=str(words["name"]) or name,
            description=str(words["description"]),
            author=author,
            **sections,
        )

    def section(self, section: str, kind: type, values: Any) -> Any:
        if not isinstance(values, dict):
            self.refuse(section, f"{section} must be a table: [{section}].")
            return kind()
        known = {one.name: one for one in fields(kind)}
        taken = {}
        for key, value in values.items():
            if key not in known:
                self.unknown(key, tuple(known), section)
            elif (wrong := _wrong(value, known[key])) is not None:
                self.refuse(key, f"[{section}] {key} must be {wrong}.")
            else:
                taken[key] = tuple(value) if isinstance(value, list) else value
        return kind(**taken)

    def unknown(self, key: str, known: tuple[str, ...], section: str = "") -> None:
        subject = f"[{section}] has" if section else "there is"
        near = difflib.get_close_matches(key, known, n=1)
        meant = f"Did you mean {near[0]}? " if near else ""
        hint = f"{meant}The settings are: {', '.join(known)}."
        self.refuse(key, f"{subject} no setting {key}.", hint, "unknown_setting")

    def refuse(
        self, key: str, message: str, hint: str = "", code: str = "setting_not_allowed"
    ) -> None:
        self.problems.append(
            PackageProblem(code, message, SourceLocation(SETTINGS_FILE, self.line(key)), hint)
        )

    def line(self, key: str) -> int | None:
        """Find the first line that begins with a key."""
        for number, line in enumerate(self.text.splitlines(), 1):
            if line.lstrip(" [\"'").startswith(key):
                return number
        return None


def _wrong(value: Any, known: Any) -> str | None:
    """Return what a setting must be, or None if the value is allowed."""
    default, about = known.default, known.metadata
    if choices := about.get("one_of"):
        fits = any(type(value) is type(one) and value == one for one in choices)
        return None if fits else " or ".join(json.dumps(one) for one in choices)
    if isinstance(default, bool):
        return None if isinstance(value, bool) else "true or false"
    if isinstance(default, tuple):
        fits = isinstance(value, list) and all(isinstance(one, str) for one in value)
        choices = about.get("each_one_of")
        if choices and not (fits and value and set(value) <= set(choices)):
            return f"a list of some of {', '.join(choices)}"
        return None if fits else "a list of strings"
    if isinstance(default, str):
        return None if isinstance(value, str) and value else "a string"
    low, high = about["range"]
    kinds = (int,) if isinstance(default, int) else (int, float)
    fits = isinstance(value, kinds) and not isinstance(value, bool) and low <= value <= high
    what = "a whole number" if isinstance(default, int) else "a number"
    return None if fits else f"{what} from {low} to {high}"

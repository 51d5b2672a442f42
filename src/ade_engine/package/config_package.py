"""Load a config package: fields, row types and hooks, found by the paths of their files.

```
config.toml                      settings (optional)
requirements.txt                 what the code imports (optional; ADE installs it, not the engine)
columns/<field>.py               FIELD, detect_<rule>, transform, validate, ...
row_types/<type>.py              detect_<rule>
hooks/<event>.py                 a function named like the event, or `run`
hooks/<event>/<name>.py          several hooks, called in the order of their file names
vendor/<module>.py               modules that the code imports by their own names (optional)
```

Files whose names begin with `_`, and files elsewhere, are modules that the author's code may
import.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import keyword
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import ModuleType
from typing import Any

from ade_engine.package.author_errors import (
    AuthorError,
    DependencyMissing,
    PackageInvalid,
    PackageProblem,
    SourceLocation,
)
from ade_engine.package.column import Column
from ade_engine.package.failures import Failures
from ade_engine.package.field import Field
from ade_engine.package.functions import (
    COLUMN_FUNCTIONS,
    DETECT_COLUMN,
    DETECT_ROW,
    HOOKS,
    AuthorFunction,
    Binder,
)
from ade_engine.package.issues import Issue
from ade_engine.package.module_loader import PackageModules
from ade_engine.package.package_settings import PackageSettings, read_settings
from ade_engine.package.source_code import PackageSource, parse

AUTHOR_NAMES = {"Column": Column, "Field": Field, "Issue": Issue}
FIELDS_MAX = 1_000


@dataclass(frozen=True)
class FieldRules:
    """One field with the functions that its file defines."""

    name: str
    field: Field
    location: SourceLocation
    detectors: tuple[AuthorFunction, ...]
    functions: dict[str, AuthorFunction]

    @property
    def label(self) -> str:
        """Return the field's header in the output."""
        return self.field.label or self.name.replace("_", " ").capitalize()


@dataclass(frozen=True)
class RowDetector:
    """One row detector and its row type."""

    row_type: str
    function: AuthorFunction


@dataclass
class Package:
    """A loaded package; `close`, or leaving a `with` block, unloads its modules."""

    folder: Path
    settings: PackageSettings
    sources: PackageSource
    fields: tuple[FieldRules, ...] = ()
    row_detectors: tuple[RowDetector, ...] = ()
    hooks: dict[str, tuple[AuthorFunction, ...]] = field(default_factory=dict)
    warnings: tuple[PackageProblem, ...] = ()
    # Entered around the hooks of an event, so that a run can say that it is in them.
    around_hooks: Callable[[str], AbstractContextManager[None]] = lambda event: nullcontext()
    _open: ExitStack = field(default_factory=ExitStack, repr=False)

    def __enter__(self) -> Package:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unload the package's modules."""
        self._open.close()

    def call_hooks(self, event: str, arguments: dict[str, Any]) -> list[Any]:
        """Call every hook of an event, in the order of their file names; return their results."""
        if event not in self.hooks:
            return []
        with self.around_hooks(event):
            return [hook(arguments) for hook in self.hooks[event]]


def load_package(folder: Path | str) -> Package:
    """Load a package, or raise PackageInvalid with everything that is wrong with it."""
    folder = Path(folder).resolve()
    if not folder.is_dir():
        missing = PackageProblem(
            "package_not_found", "the folder does not exist.", SourceLocation(folder.name)
        )
        raise PackageInvalid([missing])
    loading = _Loading(folder)
    try:
        package = loading.package()
        errors = [problem for problem in loading.problems if problem.severity == "error"]
        if errors:
            raise PackageInvalid(errors)
        package.warnings = tuple(loading.problems)
        package._open = loading.open.pop_all()
        return package
    finally:
        loading.open.close()


class _Loading:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[PackageProblem] = []
        self.sources = PackageSource(folder)
        self.failures = Failures(self.sources)
        self.binder = Binder(folder, self.failures, self.problems)
        self.open = ExitStack()

    def package(self) -> Package:
        settings = read_settings(self.folder, self.problems)
        self.modules = self.open.enter_context(PackageModules(self.folder, AUTHOR_NAMES))
        fields = tuple(self.fields())
        rows = tuple(self.row_detectors())
        hooks = dict(self.hooks())
        return Package(self.folder, settings, self.sources, fields, rows, hooks)

    def fields(self) -> Sequence[FieldRules]:
        found = [rules for file in self.files("columns") if (rules := self.field_rules(file))]
        if not found and not self.problems:
            hint = "Write columns/<field>.py with FIELD = Field(...); `ade config init` makes one."
            location = SourceLocation("columns/")
            self.report("no_fields", "the package has no fields.", location, hint)
        labels: dict[str, FieldRules] = {}
        for rules in found[:FIELDS_MAX]:
            if rules.label in labels:
                message = (
                    f"the label {rules.label!r} is also that of {labels[rules.label].location}."
                )
                self.report("duplicate_label", message, rules.location)
            labels[rules.label] = rules
        return sorted(found, key=lambda rules: (rules.field.order, rules.name))

    def field_rules(self, file: Path) -> FieldRules | None:
        name = self.sources.name(file)
        if not file.stem.isidentifier() or keyword.iskeyword(file.stem):
            message = "the file name of a field must be a Python identifier, such as member_id.py."
            self.report("file_name", message, SourceLocation(name))
            return None
        if self.has_unknown_keywords(name):
            return None
        module = self.module(file)
        if module is None:
            return None
        declared = vars(module).get("FIELD")
        if not isinstance(declared, Field):
            message = "the file does not define FIELD."
            hint = 'Write FIELD = Field(label="...", type="text").'
            self.report("no_field", message, SourceLocation(name, 1), hint)
            return None
        return FieldRules(
            name=file.stem,
            field=declared,
            location=SourceLocation(name, 1),
            detectors=tuple(self.detectors(module, f"col.{file.stem}", DETECT_COLUMN, file.stem)),
            functions=dict(self.column_functions(module, file.stem, name)),
        )

    def has_unknown_keywords(self, file: str) -> bool:
        """Report arguments that `Field(...)` does not have, with their lines."""
        known = [one.name for one in fields(Field)]
        noted = len(self.problems)
        tree = self.sources.trees.get(file, ast.Module([], []))
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
        for call in calls:
            if not (isinstance(call.func, ast.Name) and call.func.id == "Field"):
                continue
            for argument in call.keywords:
                if argument.arg is not None and argument.arg not in known:
                    near = difflib.get_close_matches(argument.arg, known, n=1)
                    meant = f"Did you mean {near[0]}? " if near else ""
                    message = f"Field has no argument {argument.arg}."
                    hint = f"{meant}It takes: {', '.join(known)}."
                    location = SourceLocation(file, argument.value.lineno)
                    self.report("unknown_parameter", message, location, hint)
        return len(self.problems) > noted

    def warn_about_computed_messages(self, file: str) -> None:
        """Warn about issues whose code or message is an f-string."""
        tree = self.sources.trees.get(file, ast.Module([], []))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = getattr(call.func, "id", None) or getattr(call.func, "attr", None)
            if name not in ("Issue", "issues_where"):
                continue
            texts = [one.value for one in call.keywords if one.arg in ("code", "message")]
            for text in (*call.args, *texts):
                if isinstance(text, ast.JoinedStr) and any(
                    isinstance(part, ast.FormattedValue) for part in text.values
                ):
                    message = "a text that is computed at run time is not recorded."
                    hint = "Use literal strings for codes and messages; they must not hold a value."
                    location = SourceLocation(file, text.lineno)
                    self.report("message_not_literal", message, location, hint, severity="warning")

    def column_functions(
        self, module: ModuleType, field_name: str, file: str
    ) -> Iterator[tuple[str, AuthorFunction]]:
        self.binder.warn_about_typos(module, tuple(COLUMN_FUNCTIONS), file)
        self.warn_about_computed_messages(file)
        for name, allowed in COLUMN_FUNCTIONS.items():
            function = vars(module).get(name)
            if inspect.isfunction(function):
                rule = f"col.{field_name}.{name}"
                bound = self.binder.bind(function, allowed, field=field_name, rule=rule)
                if bound is not None:
                    yield name, bound
        if {"transform", "transform_column"} <= vars(module).keys():
            message = "the file has both transform and transform_column."
            hint = "Keep transform_column; call the other from it if you need both."
            self.report("two_transforms", message, SourceLocation(file), hint)

    def row_detectors(self) -> Iterator[RowDetector]:
        for file in self.files("row_types"):
            module = self.module(file)
            if module is None:
                continue
            self.binder.warn_about_typos(module, (), self.sources.name(file))
            for function in self.detectors(module, f"row.{file.stem}", DETECT_ROW):
                yield RowDetector(file.stem, function)

    def detectors(
        self,
        module: ModuleType,
        prefix: str,
        allowed: tuple[str, ...],
        field_name: str | None = None,
    ) -> Iterator[AuthorFunction]:
        for rule, function in self.binder.detectors(module):
            bound = self.binder.bind(function, allowed, field=field_name, rule=f"{prefix}.{rule}")
            if bound is not None:
                yield bound

    def hooks(self) -> Iterator[tuple[str, tuple[AuthorFunction, ...]]]:
        for entry in sorted((self.folder / "hooks").glob("*")):
            event = entry.stem
            if event.startswith("_") or (entry.is_file() and entry.suffix != ".py"):
                continue
            if event not in HOOKS:
                message = f"{event} is not an event."
                hint = f"The events are: {', '.join(HOOKS)}."
                location = SourceLocation(self.sources.name(entry))
                self.report("unknown_hook", message, location, hint)
                continue
            files = sorted(entry.glob("*.py")) if entry.is_dir() else [entry]
            bound = [self.hook(file, event) for file in files if not file.stem.startswith("_")]
            yield event, tuple(one for one in bound if one is not None)

    def hook(self, file: Path, event: str) -> AuthorFunction | None:
        module = self.module(file)
        if module is None:
            return None
        function = vars(module).get(event) or vars(module).get("run")
        if not inspect.isfunction(function):
            message = f"the file does not define the function {event}."
            location = SourceLocation(self.sources.name(file), 1)
            self.report("no_hook", message, location, f"Write def {event}(ctx): ...")
            return None
        return self.binder.bind(function, HOOKS[event], rule=f"hook.{event}")

    def report(
        self,
        code: str,
        message: str,
        location: SourceLocation,
        hint: str = "",
        severity: str = "error",
    ) -> None:
        self.problems.append(PackageProblem(code, message, location, hint, severity))

    def files(self, folder: str) -> list[Path]:
        return [
            file
            for file in sorted((self.folder / folder).glob("*.py"))
            if not file.stem.startswith("_")
        ]

    def module(self, file: Path) -> ModuleType | None:
        """Import a file, or report why that fails."""
        name = self.sources.name(file)
        _, problem = parse(file, name)
        if problem is not None:
            self.problems.append(problem)
            return None
        try:
            return self.modules.load(file)
        except KeyboardInterrupt:
            raise
        except SyntaxError as error:  # in a file that this one imports
            location, _ = self.failures.locate(error, SourceLocation(name))
            self.report("syntax_error", "it imports a file that is not valid Python.", location)
        except BaseException as error:
            self.problems.append(self.import_problem(self.failures.of_import(error, name)))
        return None

    def import_problem(self, failed: AuthorError) -> PackageProblem:
        failure = failed.failure
        if isinstance(failed, DependencyMissing):
            top = failed.module.partition(".")[0]
            if top and any((self.folder / f"{top}{end}").exists() for end in ("", ".py")):
                hint = f"It is a file of this package: write `from ..{top} import ...`."
            else:
                hint = failed.advice
            named = f"the module {failed.module}" if failed.module else "a module"
            message = f"it imports {named}, which is not installed."
            return PackageProblem("dependency_missing", message, failure.location, hint)
        shown = f" at `{failure.source}`" if failure.source else ""
        message = f"loading the file raised {failure.exception}{shown}."
        return PackageProblem("load_failed", message, failure.location, failure.hint)

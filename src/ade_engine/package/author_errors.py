"""Errors of a config package, when it is loaded and when it runs.

```
EngineError
├── PackageInvalid          package_invalid     it cannot be used as it is; `problems` says why
└── AuthorError             author_code_failed  a function of the package raised
    └── DependencyMissing   dependency_missing  a module that the package imports is not installed
```

An exception of a package's code may hold the value of a cell in its message, and even in the name
of its type. Neither is repeated. An `AuthorError` names the type only if it can be found in the
module that claims to define it, and says where in the package's source the exception was raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ade_engine.errors import EngineError

USER_CODE_ERROR = "USER_CODE_ERROR"
DEPENDENCY_ERROR = "DEPENDENCY_ERROR"
VALIDATION_ERROR = "VALIDATION_ERROR"
RESOURCE_LIMIT = "RESOURCE_LIMIT"
INTERNAL_ERROR = "INTERNAL_ERROR"
ACTIVATION_RULE = "hook.on_activate"
ACTIVATE_AGAIN = "Correct the function, and activate the version again."

PROBLEMS = {
    "package_not_found": "The package's folder does not exist.",
    "no_fields": "There is no file in `columns/`.",
    "no_field": "A file in `columns/` does not define `FIELD`.",
    "file_name": "The name of a file is not a Python identifier.",
    "file_too_large": "A file is larger than a megabyte.",
    "syntax_error": "A file is not valid Python.",
    "load_failed": "A file raised an exception while it was loaded.",
    "dependency_missing": "A file imports a module that is not installed.",
    "unknown_parameter": "A function, or `Field`, has a parameter that does not exist.",
    "parameter_kind": "A function takes a parameter by position only.",
    "async_function": "A function is `async`.",
    "two_transforms": "A file has both `transform` and `transform_column`.",
    "duplicate_label": "Two fields have the same label.",
    "unknown_hook": "The name of a file in `hooks/` is not an event.",
    "no_hook": "A file in `hooks/` does not define its function.",
    "settings_unreadable": "`config.toml` is not valid TOML.",
    "unknown_setting": "A setting does not exist.",
    "setting_not_allowed": "The value of a setting is not allowed.",
    "unused_function": "A warning: a function is never called, and its name looks like a typo.",
    "message_not_literal": "A warning: an issue's code or message is not a literal string.",
}


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A file of a package, and a line in it if one is known."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class PackageProblem:
    """One thing that is wrong with a package, and what to do about it."""

    code: str
    message: str
    location: SourceLocation
    hint: str = ""
    severity: str = "error"

    def __post_init__(self) -> None:
        assert self.code in PROBLEMS, f"{self.code} is not described"

    def __str__(self) -> str:
        hint = f" {self.hint}" if self.hint else ""
        return f"{self.location}: {self.message}{hint}"

    def as_json(self) -> dict[str, Any]:
        """Return the problem as `ade config check --json` prints it."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "file": self.location.file,
            "line": self.location.line,
            "hint": self.hint,
        }


class Misuse(Exception):
    """The author's code used the API in a wrong way.

    Unlike that of any other exception, its message is shown to users, but only if the engine raised
    it.
    """


class PackageInvalid(EngineError):
    """The config package cannot be used as it is."""

    code = "package_invalid"
    advice = "`ade config check` lists everything that is wrong with it."

    def __init__(self, problems: Sequence[PackageProblem]) -> None:
        first, more = problems[0], len(problems) - 1
        others = f" (and {more} more)" if more else ""
        super().__init__(f"{first.message.rstrip('.')}{others}", where=str(first.location))
        self.problems = tuple(problems)
        missing = all(problem.code == "dependency_missing" for problem in problems)
        self.category = DEPENDENCY_ERROR if missing else USER_CODE_ERROR

    def details(self) -> dict[str, Any]:
        """Return the machine-readable details."""
        return {"problems": [problem.as_json() for problem in self.problems]}


@dataclass(frozen=True, slots=True)
class Failure:
    """What may be reported about an exception that a function of the package raised."""

    exception: str
    location: SourceLocation
    function: str
    source: str = ""
    field: str | None = None
    rule: str | None = None
    cell: str | None = None
    hint: str = ""


class AuthorError(EngineError):
    """A function of the config package raised an exception."""

    code = "author_code_failed"
    advice = "Correct the function, and try it with `ade run FILE --config DIR --traceback`."
    category: ClassVar[str] = USER_CODE_ERROR

    def __init__(self, failure: Failure, raised: BaseException | None = None) -> None:
        super().__init__(f"{failure.function} raised {failure.exception}", where=_where(failure))
        self.failure = failure
        self.raised = raised  # only for the author's own terminal; it may hold values

    def __str__(self) -> str:
        return f"{super().__str__()} {self.failure.hint}".strip()

    @property
    def next_step(self) -> str:
        """Return what to do next; `ade run` calls all functions except `on_activate`."""
        failed_to_activate = type(self) is AuthorError and self.failure.rule == ACTIVATION_RULE
        return ACTIVATE_AGAIN if failed_to_activate else self.advice

    def details(self) -> dict[str, Any]:
        """Return the machine-readable details."""
        failure, number = self.failure, _errno(self.raised)
        return {
            **({} if number is None else {"errno": number}),
            "exception": failure.exception,
            "file": failure.location.file,
            "line": failure.location.line,
            "function": failure.function,
            "source": failure.source,
            "field": failure.field,
            "rule": failure.rule,
            "cell": failure.cell,
            "hint": failure.hint,
        }


class DependencyMissing(AuthorError, ModuleNotFoundError):
    """A module that the package imports is not installed."""

    code = "dependency_missing"
    advice = "Name what provides it in the package's requirements.txt."
    category = DEPENDENCY_ERROR

    def __init__(self, module: str, failure: Failure, raised: BaseException | None = None) -> None:
        super().__init__(failure, raised)
        named = f"the module {module}" if module else "a module"
        self.message = f"{failure.function} imports {named}, which is not installed"
        self.module = self.name = module

    def details(self) -> dict[str, Any]:
        """Return the machine-readable details."""
        return {**super().details(), "module": self.module or None}


def _where(failure: Failure) -> str:
    return f"{failure.location}, cell {failure.cell}" if failure.cell else str(failure.location)


def _errno(raised: BaseException | None) -> int | None:
    """Return the errno of an OSError, which tells a denied permission from other failures."""
    number = raised.errno if isinstance(raised, OSError) else None
    return number if type(number) is int else None

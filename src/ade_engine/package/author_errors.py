"""What can go wrong with a config package, before it runs and while it runs.

```
EngineError
├── PackageInvalid          package_invalid     it cannot be used as it is; `problems` says why
└── AuthorError             author_code_failed  a function of the package raised
    └── DependencyMissing   dependency_missing  a module that the package imports is not installed
```

An exception of a package's own code may hold a cell's value in its message, and even in the name of
its type. None of that is ever repeated: an `AuthorError` says which type it was if that type can be
found where it claims to be defined, and where in the package's source it came from.
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
ACTIVATION = "hook.on_activate"
ACTIVATE_AGAIN = "Correct the function, and activate the version again."

PROBLEMS = {
    "package_not_found": "There is no such folder.",
    "no_fields": "No file in `columns/`.",
    "no_field": "A file in `columns/` without `FIELD`.",
    "file_name": "The name of a file is no Python name.",
    "file_too_large": "A file is larger than a megabyte.",
    "syntax_error": "Python cannot read a file.",
    "load_failed": "A file raised an exception while it was loaded.",
    "dependency_missing": "A file imports a module that is not installed.",
    "unknown_parameter": "A function, or `Field`, with a parameter that does not exist.",
    "parameter_kind": "A function takes a parameter by position only.",
    "async_function": "A function is `async`.",
    "two_transforms": "A file has both `transform` and `transform_column`.",
    "duplicate_label": "Two fields have the same label.",
    "unknown_hook": "A file in `hooks/` that is named as no event.",
    "no_hook": "A file in `hooks/` without its function.",
    "settings_unreadable": "`config.toml` is no TOML.",
    "unknown_setting": "A setting that does not exist.",
    "setting_not_allowed": "A setting's value is not allowed.",
    "unused_function": "A warning: nothing calls a function whose name looks like a slip.",
    "message_not_literal": "A warning: an issue's code or message is not written out.",
}


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """Where in a package something is: a file of it, and a line if one is known."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class PackageProblem:
    """One thing that is wrong with a package, and what to do about it."""

    code: str
    message: str
    place: SourceLocation
    hint: str = ""
    severity: str = "error"

    def __post_init__(self) -> None:
        assert self.code in PROBLEMS, f"{self.code} is not described"

    def __str__(self) -> str:
        hint = f" {self.hint}" if self.hint else ""
        return f"{self.place}: {self.message}{hint}"

    def as_json(self) -> dict[str, Any]:
        """Return the problem as `ade config check --json` prints it."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "file": self.place.file,
            "line": self.place.line,
            "hint": self.hint,
        }


class Misuse(Exception):
    """Say what a function of the author's API wants.

    Its message is repeated in error messages, unlike that of any other exception, and only when it
    was raised by the engine itself.
    """


class PackageInvalid(EngineError):
    """The config package cannot be used as it is."""

    code = "package_invalid"
    advice = "`ade config check` lists everything that is wrong with it."

    def __init__(self, problems: Sequence[PackageProblem]) -> None:
        first, more = problems[0], len(problems) - 1
        others = f" (and {more} more)" if more else ""
        super().__init__(f"{first.message.rstrip('.')}{others}", where=str(first.place))
        self.problems = tuple(problems)
        missing = all(problem.code == "dependency_missing" for problem in problems)
        self.category = DEPENDENCY_ERROR if missing else USER_CODE_ERROR

    def details(self) -> dict[str, Any]:
        """Return what a program may want to know."""
        return {"problems": [problem.as_json() for problem in self.problems]}


@dataclass(frozen=True, slots=True)
class Failure:
    """What may be told of an exception that a package's function raised."""

    exception: str
    place: SourceLocation
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
        self.raised = raised  # for the author's own terminal; nothing else may print it

    def __str__(self) -> str:
        return f"{super().__str__()} {self.failure.hint}".strip()

    @property
    def next_step(self) -> str:
        """Say what to do next: `ade run` calls everything but what activates."""
        is_general = type(self) is AuthorError and self.failure.rule == ACTIVATION
        return ACTIVATE_AGAIN if is_general else self.advice

    def details(self) -> dict[str, Any]:
        """Return what a program may want to know."""
        failure, number = self.failure, _errno(self.raised)
        return {
            **({} if number is None else {"errno": number}),
            "exception": failure.exception,
            "file": failure.place.file,
            "line": failure.place.line,
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
        """Return what a program may want to know."""
        return {**super().details(), "module": self.module or None}


def _where(failure: Failure) -> str:
    return f"{failure.place}, cell {failure.cell}" if failure.cell else str(failure.place)


def _errno(raised: BaseException | None) -> int | None:
    """Return the system's number of an error: it tells a refusal from a mistake."""
    number = raised.errno if isinstance(raised, OSError) else None
    return number if type(number) is int else None

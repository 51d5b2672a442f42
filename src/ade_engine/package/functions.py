"""The functions of a package: their names, the parameters that they may declare, and the call.

A function receives the parameters that it declares and no others. Which ones it may declare depends
on the function; any other parameter is reported when the package is loaded.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ade_engine.package.author_errors import PackageProblem, SourceLocation
from ade_engine.package.failures import Failures, FunctionIdentity

DETECT = "detect_"
DETECT_COLUMN = ("column", "header", "field", "table", "ctx")
DETECT_ROW = ("row", "ctx")
COLUMN_FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "transform": ("value", "row", "field", "table", "ctx"),
    "transform_column": ("column", "field", "table", "ctx"),
    "validate": ("value", "row", "field", "table", "ctx"),
    "validate_column": ("column", "field", "table", "ctx"),
    "validate_table": ("column", "field", "table", "ctx"),
}
HOOKS: Mapping[str, tuple[str, ...]] = {
    "on_activate": ("ctx",),
    "on_job_start": ("ctx",),
    "on_table_mapped": ("table", "mapping", "ctx"),
    "on_table_written": ("table", "summary", "ctx"),
    "on_job_end": ("summary", "ctx"),
}


@dataclass(frozen=True, kw_only=True)
class AuthorFunction(FunctionIdentity):
    """One function of a package, called with the parameters that it declares."""

    function: Callable[..., Any]
    failures: Failures

    def __call__(self, arguments: Mapping[str, Any], cell: str | None = None) -> Any:
        """Call the function; an exception becomes an AuthorError, which holds no cell's value."""
        try:
            return self.function(**{name: arguments[name] for name in self.parameters})
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # including sys.exit and panics of Rust libraries
            failed = self.failures.of(error, self, cell)
        raise failed

    def texts(self) -> frozenset[str]:
        """Return the string literals of the function, such as names of fields."""
        return frozenset(_constants(self.function.__code__))


def _constants(code: Any) -> Iterator[str]:
    for held in code.co_consts:
        if isinstance(held, str):
            yield held
        elif hasattr(held, "co_consts"):
            yield from _constants(held)


@dataclass(frozen=True)
class Binder:
    """Find the functions of a package's modules, and report what is wrong with them."""

    folder: Path
    failures: Failures
    problems: list[PackageProblem]

    def bind(
        self,
        function: Callable[..., Any],
        allowed: tuple[str, ...],
        *,
        field: str | None = None,
        rule: str | None = None,
    ) -> AuthorFunction | None:
        """Check the parameters of a function and wrap it."""
        location = self._location(function)
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            self._note("async_function", f"{function.__name__} must not be async.", location)
            return None
        declared = []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            if parameter.kind is parameter.POSITIONAL_ONLY:
                message = f"{function.__name__} takes {parameter.name} by position only."
                self._note("parameter_kind", message, location, "Remove the `/`.")
            elif parameter.name in allowed:
                declared.append(parameter.name)
            elif parameter.default is parameter.empty or _near(parameter.name, allowed):
                self._unknown(function, parameter.name, allowed, location)
        return AuthorFunction(
            name=function.__name__,
            parameters=tuple(declared),
            location=location,
            field=field,
            rule=rule,
            function=function,
            failures=self.failures,
        )

    def detectors(self, module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
        """Yield the `detect_<rule>` functions of a module in source order."""
        for name, function in self.own_functions(module):
            if name.startswith(DETECT) and name != DETECT:
                yield name.removeprefix(DETECT), function

    def own_functions(self, module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
        """Yield the public functions of a module, including imported ones, in source order."""
        for name, held in vars(module).items():
            if inspect.isfunction(held) and not name.startswith("_"):
                yield name, held

    def warn_about_typos(self, module: ModuleType, known: tuple[str, ...], file: str) -> None:
        """Warn about functions that are never called and whose names look like typos."""
        for name, function in self.own_functions(module):
            if name in known or name.startswith(DETECT) or function.__module__ != module.__name__:
                continue
            near = _near(name, (*known, "detect"))
            if near or name.startswith("detect"):
                meant = near if near and near != "detect" else f"{DETECT}<rule>"
                location = SourceLocation(file, function.__code__.co_firstlineno)
                self.problems.append(
                    PackageProblem(
                        "unused_function",
                        f"{name} is never called.",
                        location,
                        f"Did you mean {meant}?",
                        severity="warning",
                    )
                )

    def _unknown(
        self,
        function: Callable[..., Any],
        name: str,
        allowed: tuple[str, ...],
        location: SourceLocation,
    ) -> None:
        near = _near(name, allowed)
        meant = f"Did you mean {near}? " if near else ""
        hint = f"{meant}It may declare: {', '.join(allowed)}."
        message = f"{function.__name__} declares a parameter that does not exist: {name}."
        self._note("unknown_parameter", message, location, hint)

    def _note(self, code: str, message: str, location: SourceLocation, hint: str = "") -> None:
        self.problems.append(PackageProblem(code, message, location, hint))

    def _location(self, function: Callable[..., Any]) -> SourceLocation:
        code = inspect.unwrap(function).__code__
        path = Path(code.co_filename)
        inside = path.is_relative_to(self.folder)
        return SourceLocation(
            path.relative_to(self.folder).as_posix() if inside else path.name, code.co_firstlineno
        )


def _near(name: str, known: tuple[str, ...]) -> str | None:
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    return found[0] if found else None

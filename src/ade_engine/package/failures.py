"""Describe an exception of a package's code without revealing the value of a cell.

Its message is never reported, because it may hold a value. The name of its type is reported only if
the type can be found in the module that claims to define it. The name of a missing module,
attribute or variable is reported only if the package's source contains that name.
"""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from ade_engine.package.author_errors import (
    AuthorError,
    DependencyMissing,
    Failure,
    Misuse,
    SourceLocation,
)
from ade_engine.package.source_code import PackageSource

ENGINE = Path(__file__).parents[1]
SOURCE_CHARACTERS_MAX = 200


@dataclass(frozen=True, kw_only=True)
class FunctionIdentity:
    """What an error says about a function of the package."""

    name: str  # recorded when the package was loaded: running code can change `__name__`
    parameters: tuple[str, ...]
    location: SourceLocation
    field: str | None = None
    rule: str | None = None


@dataclass(frozen=True)
class Failures:
    """Turn exceptions of one package into AuthorErrors."""

    sources: PackageSource

    def of(
        self, error: BaseException, function: FunctionIdentity, cell: str | None = None
    ) -> AuthorError:
        """Describe an exception that a function of the package raised."""
        if isinstance(error, AuthorError):
            return error  # one function of the package called another through the engine
        location, source = self.locate(error, function.location)
        return self._described(
            error,
            Failure(
                exception=public_name(type(error)),
                location=location,
                function=function.name,
                source=source,
                field=function.field,
                rule=function.rule,
                cell=cell,
                hint=self.hint(error, source) or _advice(error, function),
            ),
        )

    def misused(
        self, function: FunctionIdentity, wants: str, cell: str | None = None
    ) -> AuthorError:
        """Return an error that says that a function returned something unusable."""
        return AuthorError(
            Failure(
                exception=Misuse.__name__,
                location=function.location,
                function=function.name,
                field=function.field,
                rule=function.rule,
                cell=cell,
                hint=wants,
            )
        )

    def of_import(self, error: BaseException, file: str) -> AuthorError:
        """Describe an exception that a file of the package raised while it was loaded."""
        location, source = self.locate(error, SourceLocation(file))
        failure = Failure(
            exception=public_name(type(error)),
            location=location,
            function="loading the file",
            source=source,
            hint=self.hint(error, source) if isinstance(error, Misuse | NameError) else "",
        )
        return self._described(error, failure)

    def _described(self, error: BaseException, failure: Failure) -> AuthorError:
        if isinstance(error, ModuleNotFoundError):
            return DependencyMissing(self._module(error), failure, error)
        return AuthorError(failure, error)

    def locate(self, error: BaseException, otherwise: SourceLocation) -> tuple[SourceLocation, str]:
        """Find the innermost line of the package in the traceback, and its source."""
        found = None
        step: TracebackType | None = error.__traceback__
        while step is not None:
            path = Path(step.tb_frame.f_code.co_filename)
            if path.is_relative_to(self.sources.folder):
                found = (path, step.tb_lineno)
            step = step.tb_next
        if found is None:
            return otherwise, ""
        path, line = found
        source = linecache.getline(str(path), line).strip()[:SOURCE_CHARACTERS_MAX]
        return SourceLocation(self.sources.name(path), line), source

    def hint(self, error: BaseException, source: str) -> str:
        """Return a hint made only of words that the package's source or the engine contains."""
        if isinstance(error, Misuse) and _raised_by_engine(error):
            message = str(error)
            return message[:1].upper() + message[1:] + ("" if message.endswith("?") else ".")
        name = getattr(error, "name", None)
        named = isinstance(name, str) and name in self.sources.words and name in source
        if isinstance(error, NameError) and named:
            return f"`{name}` is not defined there."
        if isinstance(error, AttributeError) and named:
            held = public_name(type(getattr(error, "obj", None)))
            return f"{held} has no attribute `{name}`; `type` in Field sets the type of a value."
        return ""

    def _module(self, error: ModuleNotFoundError) -> str:
        """Return the name of a missing module if an import statement contains it."""
        name = error.name or ""
        top = name.partition(".")[0]
        wanted = {module.partition(".")[0] for module in self.sources.imports}
        return name if top in wanted and name in (self.sources.imports | wanted) else ""


def _advice(error: BaseException, function: FunctionIdentity) -> str:
    """Return the usual cause of such an exception in a function with these parameters."""
    parameters = set(function.parameters)
    if isinstance(error, TypeError | ValueError):
        if function.field is not None and parameters & {"value", "column", "row", "table"}:
            return "The column may hold numbers, dates, or texts of another form."
        if "row" in parameters:
            return "The sheet may have rows with other cells than expected."
    if isinstance(error, KeyError) and parameters & {"row", "table"}:
        return "`row` and `table` hold only the fields that were mapped; use .get()."
    return ""


def public_name(kind: type) -> str:
    """Return the name of a type, or of its nearest base, that its module really defines."""
    for known in kind.__mro__:
        home = sys.modules.get(known.__module__)
        if home is not None and getattr(home, str(known.__qualname__), None) is known:
            return str(known.__qualname__)
    return "an exception"


def _raised_by_engine(error: BaseException) -> bool:
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and Path(step.tb_frame.f_code.co_filename).is_relative_to(ENGINE)

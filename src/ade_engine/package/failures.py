"""Tell what may be told of an exception that came out of a package's code.

Never its message: that may hold a cell's value. The name of its type only if the type stands where
it says it was defined. The name of a missing module, attribute or variable only if the package's
own source uses that name.
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

    name: str  # as it was when the package was loaded: running code can change its own
    parameters: tuple[str, ...]
    place: SourceLocation
    field: str | None = None
    rule: str | None = None


@dataclass(frozen=True)
class Failures:
    """Describe exceptions of one package."""

    sources: PackageSource

    def of(
        self, error: BaseException, function: FunctionIdentity, cell: str | None = None
    ) -> AuthorError:
        """Describe an exception that a function of the package raised."""
        if isinstance(error, AuthorError):
            return error  # one function of the package called another through the engine
        place, source = self.place(error, function.place)
        return self._described(
            error,
            Failure(
                exception=public_name(type(error)),
                place=place,
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
        """Say that a function gave back something that the engine cannot use."""
        return AuthorError(
            Failure(
                exception=Misuse.__name__,
                place=function.place,
                function=function.name,
                field=function.field,
                rule=function.rule,
                cell=cell,
                hint=wants,
            )
        )

    def of_import(self, error: BaseException, file: str) -> AuthorError:
        """Describe an exception that a file of the package raised while it was loaded."""
        place, source = self.place(error, SourceLocation(file))
        failure = Failure(
            exception=public_name(type(error)),
            place=place,
            function="loading the file",
            source=source,
            hint=self.hint(error, source) if isinstance(error, Misuse | NameError) else "",
        )
        return self._described(error, failure)

    def _described(self, error: BaseException, failure: Failure) -> AuthorError:
        if isinstance(error, ModuleNotFoundError):
            return DependencyMissing(self._module(error), failure, error)
        return AuthorError(failure, error)

    def place(self, error: BaseException, otherwise: SourceLocation) -> tuple[SourceLocation, str]:
        """Find the innermost line of the package that the exception came through."""
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
        """Say what helps, out of words that the package or the engine wrote."""
        if isinstance(error, Misuse) and _raised_by_engine(error):
            said = str(error)
            return said[:1].upper() + said[1:] + ("" if said.endswith("?") else ".")
        name = getattr(error, "name", None)
        named = isinstance(name, str) and name in self.sources.words and name in source
        if isinstance(error, NameError) and named:
            return f"`{name}` is not defined there."
        if isinstance(error, AttributeError) and named:
            held = public_name(type(getattr(error, "obj", None)))
            return f"`{name}` was asked of {held}; `type` in Field says what a value is."
        return ""

    def _module(self, error: ModuleNotFoundError) -> str:
        """Name a missing module if an import statement names it."""
        name = error.name or ""
        top = name.partition(".")[0]
        wanted = {module.partition(".")[0] for module in self.sources.imports}
        return name if top in wanted and name in (self.sources.imports | wanted) else ""


def _advice(error: BaseException, function: FunctionIdentity) -> str:
    """Say what often is the cause, with a function that was given such things."""
    given = set(function.parameters)
    if isinstance(error, TypeError | ValueError):
        if function.field is not None and given & {"value", "column", "row", "table"}:
            return "Think of numbers, dates and texts of another form in this column."
        if "row" in given:
            return "Think of rows with other cells than those that you have in mind."
    if isinstance(error, KeyError) and given & {"row", "table"}:
        return "`row` and `table` know the fields that were mapped; ask with .get()."
    return ""


def public_name(kind: type) -> str:
    """Name a type, or the nearest one above it that stands where it says it was defined."""
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

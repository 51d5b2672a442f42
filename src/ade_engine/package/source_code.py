"""Analyse the files of a package without running them: string literals, names and imports.

A text that an author's code passes to the engine is recorded only if it is a literal in the
package's source: a literal was written before any cell was read, so it cannot hold a value.
"""

from __future__ import annotations

import ast
import hashlib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ade_engine.package.author_errors import PackageProblem, SourceLocation
from ade_engine.package.module_loader import VENDOR

SETTINGS_FILE = "config.toml"
LEFT_OUT = {"__pycache__", ".git", ".venv", ".pytest_cache"}
FILES_MAX = 2_000
FILE_BYTES_MAX = 1_000_000


@dataclass(frozen=True)
class PackageSource:
    """The files of a package folder."""

    folder: Path

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """List the files that make up the package, including vendored modules, in order."""
        found = sorted(path for path in self.folder.rglob("*") if self._counts(path))
        return tuple(found[:FILES_MAX])

    def _counts(self, path: Path) -> bool:
        inside = path.relative_to(self.folder).parts
        return not LEFT_OUT & set(inside) and path.is_file()

    @cached_property
    def digest(self) -> str:
        """Return a digest of the names and contents of all files."""
        whole = hashlib.sha256()
        for path in self.files:
            content = path.read_bytes()
            whole.update(f"{self.name(path)}\0{len(content)}\0".encode())
            whole.update(content)
        return f"sha256:{whole.hexdigest()}"

    def name(self, path: Path) -> str:
        """Return a file's path relative to the package."""
        return path.relative_to(self.folder).as_posix()

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """Return the syntax tree of every Python file of the author's own that has one."""
        trees = {}
        for path in self.files:
            if path.suffix == ".py" and path.relative_to(self.folder).parts[0] != VENDOR:
                tree, _ = parse(path, self.name(path))
                if tree is not None:
                    trees[self.name(path)] = tree
        return trees

    @cached_property
    def texts(self) -> frozenset[str]:
        """Return every string literal of the code and every string of `config.toml`."""
        return frozenset(_texts_of_code(self.trees.values())) | frozenset(
            _texts_of_settings(self.folder / SETTINGS_FILE)
        )

    @cached_property
    def words(self) -> frozenset[str]:
        """Return every identifier in the package's code."""
        return frozenset(_words_of_code(self.trees.values()))

    @cached_property
    def imports(self) -> frozenset[str]:
        """Return the modules that import statements of the package name."""
        return frozenset(_imports_of_code(self.trees.values()))


def parse(path: Path, name: str) -> tuple[ast.Module | None, PackageProblem | None]:
    """Parse one file, or report what is wrong with it."""
    if path.stat().st_size > FILE_BYTES_MAX:
        message = f"the file is larger than {FILE_BYTES_MAX // 1000} kB."
        return None, PackageProblem("file_too_large", message, SourceLocation(name))
    try:
        return ast.parse(path.read_bytes(), filename=str(path)), None
    except SyntaxError as error:
        message = f"the file is not valid Python: {error.msg}."
        return None, PackageProblem("syntax_error", message, SourceLocation(name, error.lineno))
    except ValueError:
        return None, PackageProblem(
            "syntax_error", "the file holds null bytes.", SourceLocation(name)
        )


def _texts_of_code(trees: Any) -> Iterator[str]:
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                continue
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def _words_of_code(trees: Any) -> Iterator[str]:
    for tree in trees:
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                    yield name
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                    yield name


def _imports_of_code(trees: Any) -> Iterator[str]:
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (name.name for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module


def _texts_of_settings(path: Path) -> Iterator[str]:
    try:
        waiting: list[Any] = [tomllib.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError):
        return
    while waiting:
        held = waiting.pop()
        if isinstance(held, str):
            yield held
        elif isinstance(held, dict):
            waiting += held.values()
        elif isinstance(held, list):
            waiting += held

"""What runs in a sandboxed child imports the standard library and itself only."""

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[3] / "src"
CHILD = ("ade.sandbox.child", "ade.sandbox.layers")
# The engine runs the job itself. It is imported inside functions, when the layers are applied.
ENTRIES = ("ade_engine",)


def imports_outside_the_standard_library(
    packages: Iterable[str], *, src: Path = SRC, late: Iterable[str] = ()
) -> list[str]:
    """List the imports of modules that are neither in these packages nor in the standard library.

    Each is given as "file:line module". Imports for type checkers count too. Modules of `late` may
    be imported inside functions, and nowhere else.
    """
    allowed = tuple(packages)
    found = []
    for package in allowed:
        for path in sorted(src.joinpath(*package.split(".")).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            inside_functions = {
                id(node)
                for function in ast.walk(tree)
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
                for node in ast.walk(function)
            }
            for node, module in _imported(tree):
                is_late = id(node) in inside_functions and _is_in(module, late)
                if not (is_late or _is_standard(module) or _is_in(module, allowed)):
                    found.append(f"{path.relative_to(src)}:{node.lineno} {module}")
    return found


def _imported(tree: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield node, "." * node.level + (node.module or "")
            else:
                yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def _is_in(module: str, packages: Iterable[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def test_what_runs_in_the_child_imports_the_standard_library_and_itself_only() -> None:
    assert imports_outside_the_standard_library(CHILD, late=ENTRIES) == []


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("import numpy", "numpy"),
        ("import os, httpx.auth", "httpx.auth"),
        ("from numpy import ma", "numpy.ma"),
        ("from ade import settings", "ade.settings"),
        ("from ade.domain.limits import Limits", "ade.domain.limits.Limits"),
        ("from . import linux", "."),
        ("import ade_engine", "ade_engine"),
        ("def f():\n    import numpy", "numpy"),
        ("def f():\n    from ade.sandbox import pool", "ade.sandbox.pool"),
    ],
)
def test_an_import_of_anything_else_is_found(tmp_path: Path, line: str, module: str) -> None:
    folder = tmp_path / "ade" / "sandbox" / "layers"
    folder.mkdir(parents=True)
    allowed = "import os\nfrom ade.sandbox.layers import linux\n"
    late = "def late():\n    from ade_engine.running import run_entry\n"
    (folder / "planted.py").write_text(f"{allowed}{late}{line}\n")
    [found] = imports_outside_the_standard_library(CHILD, src=tmp_path, late=ENTRIES)
    assert found.endswith(f" {module}")

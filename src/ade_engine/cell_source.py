"""The source of a cell: what is compiled, what its value is, and whether it is a script."""

import ast
import re
import types
from collections.abc import Iterable, Iterator
from typing import TypeGuard

FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
REWRITES_MAX = 50
# Notebooks need this line to show figures in the page, which cells do anyway.
_SHOW_FIGURES = re.compile(r"\s*%\s*matplotlib\b.*")
_COMMAND = re.compile(r"\s*(%%?|!!?|\?{1,2})\s*([A-Za-z_]\w*)?")


class NotebookCommand(SyntaxError):
    """A line is a command of a notebook and not Python."""


class CellSource:
    """Parse one cell; its file name is what errors show."""

    def __init__(self, file: str, source: str) -> None:
        self.file = file
        self.text = source.removeprefix("\ufeff")
        self._tree = self._parse()
        self._last: ast.Expr | None = None

    def compile(self) -> list[types.CodeType]:
        """Return the code of the statements, and that of the last expression if there is one.

        The expression that ends `if __name__ == "__main__":` counts too, as the script ends there.
        A semicolon after the last expression hides its value, as in a notebook.
        """
        last = self._last = _take_last_expression(self._tree.body)
        statements = compile(self._tree, self.file, "exec", FLAGS, dont_inherit=True)
        if last is None:
            return [statements]
        if self._is_hidden(last):
            end = compile(ast.Module([last], []), self.file, "exec", FLAGS, dont_inherit=True)
        else:
            end = compile(ast.Expression(last.value), self.file, "eval", FLAGS, dont_inherit=True)
        return [statements, end]

    def at_module_level(self) -> Iterator[ast.AST]:
        """Yield what is run when the cell is run: not the bodies of functions."""
        waiting: list[ast.AST] = [self._tree, *([self._last] if self._last else [])]
        while waiting:
            node = waiting.pop()
            yield node
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                waiting.extend(ast.iter_child_nodes(node))

    def _is_hidden(self, last: ast.Expr) -> bool:
        line = self.text.split("\n")[(last.end_lineno or 1) - 1].encode()
        return line[last.end_col_offset or 0 :].lstrip().startswith(b";")

    def _parse(self) -> ast.Module:
        text = self.text
        for _ in range(REWRITES_MAX):
            try:
                return ast.parse(text, self.file)
            except SyntaxError as error:
                text = self._without_command(text, error)
        return ast.parse(text, self.file)

    def _without_command(self, text: str, error: SyntaxError) -> str:
        """Drop the line that shows figures in a notebook; raise for every other command."""
        lines = text.split("\n")
        number = error.lineno or 0
        line = lines[number - 1] if 0 < number <= len(lines) else ""
        found = _COMMAND.match(line)
        if found is None:
            raise error
        if _SHOW_FIGURES.fullmatch(line):
            indent = line[: len(line) - len(line.lstrip())]
            lines[number - 1] = f"{indent}pass"
            return "\n".join(lines)
        raise NotebookCommand(_advice(found[1], found[2] or ""), (self.file, number, 1, line))


def _advice(sign: str, word: str) -> str:
    shown = f"{sign}{word}"
    if word in {"pip", "conda", "mamba", "uv"}:
        advice = "name the packages in `requirements` of the request"
    elif sign.startswith("!"):
        advice = "use subprocess.run"
    else:
        advice = "remove it"
    return f"{shown!r} is a command of notebooks, not Python; {advice}"


def _take_last_expression(body: list[ast.stmt]) -> ast.Expr | None:
    """Remove the last statement if it is an expression, and return it."""
    if not body:
        return None
    last = body[-1]
    if isinstance(last, ast.Expr):
        body.pop()
        return last
    if _is_main_guard(last):
        found = _take_last_expression(last.body)
        if found is not None and not last.body:
            last.body.append(ast.copy_location(ast.Pass(), found))
        return found
    return None


def _is_main_guard(node: ast.AST) -> TypeGuard[ast.If]:
    """Recognise `if __name__ == "__main__":`."""
    if not isinstance(node, ast.If) or node.orelse:
        return False
    test = node.test
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = [test.left, *test.comparators]
    is_name = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
    is_main = any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)
    return is_name and is_main


def runs_as_script(sources: Iterable[CellSource], entrypoint: str, *, by_default: bool) -> bool:
    """Tell whether cells call their entrypoint themselves, so that it must not be called again.

    `by_default` is for an entrypoint that the request may not have named: a cell with the guard of
    a script is one, and a function that it only imported is not its entrypoint.
    """
    nodes = (node for source in sources for node in source.at_module_level())
    return any(
        _calls(node, entrypoint)
        or (by_default and (_is_main_guard(node) or _imports(node, entrypoint)))
        for node in nodes
    )


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _imports(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom) and any(
        (alias.asname or alias.name) == name for alias in node.names
    )

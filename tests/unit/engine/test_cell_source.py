"""What is compiled of a cell, and whether it is a script."""

import pytest

from ade_engine.cell_source import CellSource, NotebookCommand, runs_as_script

MAIN = "def main(): return 1\n"


@pytest.mark.parametrize(
    ("source", "is_script"),
    [
        (MAIN, False),
        (MAIN + "main()", True),
        (MAIN + "x = [main() for _ in 'a']", True),
        (MAIN + "if __name__ == '__main__':\n    main()", True),
        (MAIN + "if '__main__' == __name__:\n    print(1)", True),
        (MAIN + "def other(): return main()", False),
        ("from unittest import main", True),
        ("import numpy as main", True),
        ("class A:\n    x = main()", True),
    ],
)
def test_a_cell_that_calls_main_itself_is_a_script(source: str, is_script: bool) -> None:
    cell = CellSource("cell.py", source)
    cell.compile()
    assert runs_as_script([cell], "main", by_default=True) is is_script


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("!pip install pandas", "requirements"),
        ("%pip install pandas", "requirements"),
        ("!ls", "subprocess"),
        ("%time f()", "remove it"),
        ("%%bash", "remove it"),
        ("?f", "remove it"),
    ],
)
def test_commands_of_notebooks_are_named(line: str, advice: str) -> None:
    with pytest.raises(NotebookCommand, match=advice) as raised:
        CellSource("cell.py", f"x = 1\n{line}\n")
    assert raised.value.lineno == 2


def test_the_line_that_shows_figures_is_ignored() -> None:
    assert len(CellSource("cell.py", "%matplotlib inline\n1").compile()) == 2


@pytest.mark.parametrize("source", ["x = (10\n% 3)", "x = '''\n!ls\n'''", "x = 7\\\n% 4"])
def test_signs_that_are_python_stay(source: str) -> None:
    CellSource("cell.py", source).compile()


def test_another_syntax_error_is_pythons_own() -> None:
    with pytest.raises(SyntaxError, match="never closed"):
        CellSource("cell.py", "f(1")

"""The stack that a child reports is repeated only as far as it can be checked."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ade_engine
from ade.domain.outcome import Category, CodeLocation, JobError, located
from ade.sandbox.stack_location import (
    DOING,
    FRAMES_MAX,
    OUTERMOST,
    JobSources,
    StackFrame,
    StackTrace,
    locate,
)

AMOUNT = "def detect_amount(column):\n    return tidy(column)\n"
MONEY = "def tidy(column):\n    while True:\n        pass\n"
SECRET = "Vermeulen-7"
ENGINE = "/usr/lib/python3/site-packages/ade_engine"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Give a job's files: a package, and a document that has the name of a module."""
    texts = {
        "config/columns/amount.py": AMOUNT,
        "config/columns/_money.py": MONEY,
        "config/hooks/on_activate.py": "def on_activate(ctx):\n    pass\n",
        "config/config.toml": f"name = '{SECRET}'\n",
        "inputs/01-people.py": f"{SECRET}\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in texts}


@pytest.fixture
def sources(files: dict[str, Path]) -> JobSources:
    """Know the code of a run."""
    return JobSources(files, {"config": "config", "input": "inputs/01-people.py"})


def stack_trace(*lines: str) -> StackTrace:
    """Hear lines as a child writes them."""
    stack = StackTrace()
    for line in ("Stack (most recent call first):", *lines):
        stack.receive(line.encode())
    return stack


def frame(file: str, line: int = 1, name: str = "f") -> str:
    """Format a frame as the interpreter does."""
    return f'  File "{file}", line {line} in {name}'


# --- the stack ------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [frame(f"{ENGINE}/run_entry.py", 25, "run_entry"), "  ..."])
def test_a_stack_is_whole_where_the_jobs_own_part_ends(last: str) -> None:
    stack = stack_trace(frame("/usr/lib/re.py", 3, "match"), frame("cell.py", 9, "run_entry"))
    was_whole = [stack.is_whole]
    for line in (last, "Stack (most recent call first):"):
        stack.receive(line.encode())
        was_whole.append(stack.is_whole)
    assert was_whole == [False, True, False]


def test_a_stack_is_heard_from_its_inside_out() -> None:
    stack = stack_trace(frame("/job/a.py", 3, "inner"), frame("/job/b.py", 9, "<module>"))
    assert stack.frames == [
        StackFrame("/job/a.py", 3, "inner"),
        StackFrame("/job/b.py", 9, "<module>"),
    ]


def test_a_second_stack_takes_the_place_of_the_first() -> None:
    stack = stack_trace(frame("/job/a.py"))
    stack.receive(b"Stack (most recent call first):")
    stack.receive(frame("/job/b.py").encode())
    assert [one.file for one in stack.frames] == ["/job/b.py"]


def test_letters_beyond_ascii_are_read_back() -> None:
    stack = stack_trace(frame(r"/job/betr\xe4ge_\u0142.py", 1, r"pr\xfcfe"))
    assert stack.frames == [StackFrame("/job/beträge_ł.py", 1, "prüfe")]


def test_a_stack_has_an_end() -> None:
    stack = stack_trace(*[frame("/job/a.py")] * 10_000)
    assert len(stack.frames) == FRAMES_MAX


@given(st.binary(max_size=3000))
def test_nothing_that_is_said_does_harm(line: bytes) -> None:
    stack = StackTrace()
    stack.receive(line)
    locate(stack, JobSources({}, {}))


# --- what is known --------------------------------------------------------------------------------


def test_the_place_is_the_innermost_of_the_jobs_own_code(sources: JobSources) -> None:
    stack = stack_trace(
        frame("/usr/lib/python3/re.py", 100, "match"),
        frame("/job/config/columns/amount.py", 2, "detect_amount"),
        frame(f"{ENGINE}/mapping/scores.py", 50, "score"),
    )
    assert locate(stack, sources) == CodeLocation(
        "columns/amount.py", 2, "detect_amount", "amount", "return tidy(column)"
    )


def test_the_field_is_that_of_the_caller(sources: JobSources) -> None:
    stack = stack_trace(
        frame("/somewhere/else/config/columns/_money.py", 2, "tidy"),
        frame("/somewhere/else/config/columns/amount.py", 2, "detect_amount"),
    )
    assert locate(stack, sources) == CodeLocation(
        "columns/_money.py", 2, "tidy", "amount", "while True:"
    )


def test_a_hook_works_for_no_field(sources: JobSources) -> None:
    found = locate(stack_trace(frame("config/hooks/on_activate.py", 2, "on_activate")), sources)
    assert found == CodeLocation("hooks/on_activate.py", 2, "on_activate", None, "pass")


@pytest.mark.parametrize(
    "lie",
    [
        frame("/job/inputs/01-people.py"),
        frame("/job/config/config.toml"),
        frame("/etc/passwd"),
        frame(SECRET),
        frame("/job/config/columns/amount.py", 0),
        frame("/job/config/columns/amount.py", 3),
        frame("/job/config/columns/amount.py/../../../inputs/01-people.py"),
        frame("/job/config/columns/AMOUNT.py"),
        f'  File "/job/config/columns/amount.py", line 1 in f\n{SECRET}',
    ],
)
def test_what_is_not_code_of_the_job_is_not_repeated(sources: JobSources, lie: str) -> None:
    assert locate(stack_trace(lie), sources) is None


@pytest.mark.parametrize("name", [SECRET, "Vermeulen", "<listcomp>", "column", "", "f in g"])
def test_a_function_that_the_file_does_not_define_is_not_named(
    sources: JobSources, name: str
) -> None:
    found = locate(stack_trace(frame("/job/config/columns/amount.py", 2, name)), sources)
    if found is not None:
        assert found.function is None
        assert SECRET not in str(found.as_dict())


def test_a_file_that_is_gone_has_no_place(files: dict[str, Path]) -> None:
    sources = JobSources(files, {"config": "config"})
    files["config/columns/amount.py"].unlink()
    assert locate(stack_trace(frame("/job/config/columns/amount.py")), sources) is None


def test_cells_are_known_by_their_source() -> None:
    cells = [{"file": "cell.py", "source": "def f():\n    spin()\n"}]
    earlier = [{"cells": [{"file": "first.py", "source": "x = 1\n"}]}]
    sources = JobSources({}, {"cells": cells, "snapshots": earlier})
    assert locate(stack_trace(frame("cell.py", 2, "f")), sources) == CodeLocation(
        "cell.py", 2, "f", None, "spin()"
    )
    assert locate(stack_trace(frame("first.py", 1, "<module>")), sources) == CodeLocation(
        "first.py", 1, None, None, "x = 1"
    )


@pytest.mark.parametrize(
    ("file", "doing"),
    [
        (f"{ENGINE}/sheets/workbook.py", "reading the file"),
        (f"{ENGINE}/writing/rows.py", "writing the output"),
        (f"{ENGINE}/{SECRET}/rows.py", None),
        (f"{ENGINE}/run_entry.py", None),
    ],
)
def test_where_the_engine_is_says_what_it_does(
    sources: JobSources, file: str, doing: str | None
) -> None:
    found = locate(stack_trace(frame("/usr/lib/python3/zlib.py"), frame(file)), sources)
    assert found == (None if doing is None else CodeLocation(doing=doing))


@pytest.mark.parametrize(
    ("progress", "doing"),
    [
        ({"done": 0, "total": 0, "message": "reading"}, "reading the file"),
        ({"done": 5, "total": 9, "message": "writing"}, "writing the output"),
        ({"message": SECRET}, None),
        ({"message": ["reading"]}, None),
        ({}, None),
        (None, None),
    ],
)
def test_who_does_not_answer_was_where_its_progress_was(
    sources: JobSources, progress: dict[str, Any] | None, doing: str | None
) -> None:
    found = locate(StackTrace(), sources, progress)
    assert found == (None if doing is None else CodeLocation(doing=doing))


# --- in an error ----------------------------------------------------------------------------------

LATE = JobError(Category.RESOURCE_LIMIT, "LATE", "It was late.", {"timeout_ms": 5})


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (None, "It was late."),
        (CodeLocation("a.py", 3, "f", "amount", "x"), "It was late, in f (a.py:3, field amount)."),
        (CodeLocation("a.py", 3), "It was late (a.py:3)."),
        (CodeLocation("a.py", 3, "f"), "It was late, in f (a.py:3)."),
        (CodeLocation(doing="reading the file"), "It was late, while reading the file."),
    ],
)
def test_an_error_says_where(place: CodeLocation | None, message: str) -> None:
    found = located(LATE, place)
    assert found.message == message
    assert found.details == {"timeout_ms": 5} | ({} if place is None else place.as_dict())
    assert (found.category, found.code) == (LATE.category, LATE.code)


def test_an_error_that_has_a_place_keeps_it() -> None:
    known = JobError(Category.RESOURCE_LIMIT, "LATE", "It was late.", {"file": "b.py"})
    assert located(known, CodeLocation("a.py", 3)) == known


def test_the_files_of_the_engine_that_are_known_by_name_exist() -> None:
    engine = Path(ade_engine.__file__).parent
    file, function = OUTERMOST
    source = engine.parent / file.lstrip("/")
    assert f"def {function}(" in source.read_text(encoding="utf-8")
    assert all((engine / folder).is_dir() for folder in DOING)

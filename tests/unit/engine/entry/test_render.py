"""A job writes drawings to `artifacts/`, describes them, and returns their size."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ade_engine.render
from ade_engine.channel import Channel
from ade_engine.describe_exception import describe
from ade_engine.entry.render import main
from ade_engine.render import BadFormula, formula_svg, to_png

BARE = {"display": None, "font_size": None, "color": None, "scale": 2.0, "formats": ["svg"]}


def equation(latex: str, **more: Any) -> dict[str, Any]:
    content = {"format": "latex", "value": latex}
    return {"object": {"type": "equation", "content": content}, **BARE, **more}


def run(
    inputs: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run a job in a folder; return its result and the descriptions of its files."""
    monkeypatch.chdir(folder)
    stream = io.StringIO()
    result = main(inputs, Channel(stream))
    return result, [json.loads(line)["artifact"] for line in stream.getvalue().splitlines()]


def test_each_format_is_a_file_that_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = equation("x^2", formats=["svg", "png"], scale=3.0)
    result, described = run(inputs, tmp_path, monkeypatch)
    drawing = formula_svg("x^2")
    size = {
        "width": drawing.width,
        "height": drawing.height,
        "baseline": drawing.baseline,
    }
    assert (tmp_path / "artifacts/equation.svg").read_text() == drawing.svg
    assert (tmp_path / "artifacts/equation.png").read_bytes() == to_png(drawing.svg, scale=3)
    assert result == {**size, "formats": ["svg", "png"], "drawn_by": drawing.drawn_by}
    assert described[0] == {"name": "equation.svg", "kind": "equation", "metadata": size}
    assert described[1]["metadata"]["scale"] == 3.0
    assert described[1]["metadata"]["width"] == pytest.approx(drawing.width * 3, abs=1)


def test_options_reach_the_drawing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = equation(r"\sum_i x", display=False, font_size=30, color="#123456")
    run(inputs, tmp_path, monkeypatch)
    expected = formula_svg(r"\sum_i x", display=False, size=30, color="#123456")
    assert (tmp_path / "artifacts/equation.svg").read_text() == expected.svg


def test_only_the_requested_formats_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(equation("x", formats=["png"]), tmp_path, monkeypatch)
    assert os.listdir(tmp_path / "artifacts") == ["equation.png"]


def test_an_error_declares_its_job_error() -> None:
    with pytest.raises(BadFormula) as caught:
        main(equation("{x"), Channel(io.StringIO()))
    assert describe(caught.value)["declared"] == {
        "category": "USER_CODE_ERROR",
        "code": "BAD_FORMULA",
        "message": "{ is never closed (line 1, column 1).",
        "details": {"line": 1, "column": 1},
    }


def test_preloading_starts_no_thread_opens_no_file_and_needs_no_home() -> None:
    """A process with threads cannot be forked safely, and ziamath needs a home folder."""
    look = (
        "import os, pwd, sys; sys.path.insert(0, sys.argv[1])\n"
        "pwd.getpwuid = {}.__getitem__  # nobody has an entry here\n"
        "before = os.listdir('/proc/self/fd')\n"
        "os.cpu_count = lambda: 128\n"
        "import ade_engine.preload.drawing\n"
        "assert len(os.listdir('/proc/self/task')) == 1\n"
        "assert os.listdir('/proc/self/fd') == before\n"
        "assert 'HOME' not in os.environ\n"
        "assert os.environ['RAYON_NUM_THREADS'] == '4'\n"
    )
    source = str(Path(ade_engine.render.__file__).parents[2])
    command = [sys.executable, "-I", "-W", "error", "-c", look, source]
    ended = subprocess.run(command, env={}, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr


def test_the_public_names_are_these() -> None:
    assert set(ade_engine.render.__all__) == {
        "BadDiagram",
        "BadFormula",
        "BadPicture",
        "GraphvizNotFound",
        "Drawing",
        "RenderError",
        "diagram_svg",
        "formula_svg",
        "to_png",
    }

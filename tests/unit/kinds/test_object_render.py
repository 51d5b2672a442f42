"""The inputs of `object_render`, and what its results depend on."""

from importlib.metadata import version
from typing import Any

import pytest
from pydantic import ValidationError

from ade.kinds import JobInputs
from ade.kinds.object_render import (
    DOT_CHARS_MAX,
    LATEX_CHARS_MAX,
    SCALE_MAX,
    SCALE_MIN,
    SIZE_MAX,
    SIZE_MIN,
    ObjectRender,
    RenderInputs,
    RenderOutputs,
)
from ade.worker.job_io import NoJobIO
from ade_engine.render import dot, formula, latex, raster

EQUATION = {"type": "equation", "content": {"format": "latex", "value": "x"}}
DIAGRAM = {"type": "diagram", "content": {"format": "dot", "value": "digraph {}"}}


def test_defaults_are_filled_in() -> None:
    assert RenderInputs.model_validate({"object": EQUATION}).model_dump(mode="json") == {
        "object": EQUATION,
        "display": None,
        "font_size": None,
        "color": None,
        "scale": 2.0,
    }
    assert RenderOutputs().formats == ["svg"]


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"object": {"type": "equation", "content": {"format": "dot", "value": "x"}}},
        {"object": {"type": "diagram", "content": {"format": "latex", "value": "x"}}},
        {"object": {"type": "plot", "content": {"format": "latex", "value": "x"}}},
        {"object": EQUATION, "more": 1},
        {"object": EQUATION | {"more": 1}},
        {"object": EQUATION | {"content": {"format": "latex", "value": ""}}},
        {"object": EQUATION | {"content": {"format": "latex", "value": "x" * 5_001}}},
        {"object": EQUATION, "font_size": 3},
        {"object": EQUATION, "font_size": 201},
        {"object": EQUATION, "scale": 17},
        {"object": EQUATION, "color": "red"},
        {"object": EQUATION, "color": "#12345"},
        {"object": EQUATION, "color": "#123456\n"},
        {"object": DIAGRAM, "display": True},
    ],
)
def test_what_cannot_be_drawn_is_not_accepted(inputs: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RenderInputs.model_validate(inputs)


@pytest.mark.parametrize("formats", [[], ["pdf"], ["svg", "svg"]])
def test_unknown_formats_are_rejected(formats: list[str]) -> None:
    with pytest.raises(ValidationError):
        RenderOutputs.model_validate({"formats": formats})


async def test_the_entry_gets_the_formats_beside_the_inputs() -> None:
    asked = JobInputs("w", "j", 1, {"object": EQUATION}, {"formats": ["png"]})
    prepared = await ObjectRender().prepare(asked, NoJobIO())
    assert prepared.inputs == {"object": EQUATION, "formats": ["png"]}


def test_results_depend_on_the_drawing_libraries() -> None:
    assert f"+ziamath{version('ziamath')}+" in ObjectRender.env_version


def test_the_limits_are_those_of_the_engine() -> None:
    """The server does not import the engine's renderer, so that it starts faster."""
    assert (LATEX_CHARS_MAX, DOT_CHARS_MAX) == (latex.CHARS_MAX, dot.CHARS_MAX)
    assert (SIZE_MIN, SIZE_MAX) == (formula.SIZE_MIN, formula.SIZE_MAX)
    assert (SCALE_MIN, SCALE_MAX) == (raster.SCALE_MIN, raster.SCALE_MAX)

"""Run a job of kind `object_render`: one object, drawn in the formats that were asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ade_engine.channel import Channel
from ade_engine.render.diagram import diagram_svg
from ade_engine.render.formula import SIZE_DEFAULT, formula_svg
from ade_engine.render.raster import png_size, to_png
from ade_engine.render.safe_svg import Drawing

FOLDER = Path("artifacts")


def main(inputs: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Draw the object; leave `artifacts/<type>.<format>` and return its measures."""
    kind = inputs["object"]["type"]
    picture = _draw(inputs)
    FOLDER.mkdir(exist_ok=True)
    measures: dict[str, Any] = {"width": picture.width, "height": picture.height}
    if kind == "equation":
        measures["baseline"] = picture.baseline
    for form in inputs["formats"]:
        name = f"{kind}.{form}"
        if form == "svg":
            (FOLDER / name).write_text(picture.svg, encoding="utf-8")
            channel.artifact(name, kind=kind, metadata=measures)
        else:
            png = to_png(picture.svg, scale=inputs["scale"])
            (FOLDER / name).write_bytes(png)
            width, height = png_size(png)
            sizes = {"width": width, "height": height, "scale": inputs["scale"]}
            channel.artifact(name, kind=kind, metadata=sizes)
    return {**measures, "formats": inputs["formats"], "drawn_by": picture.drawn_by}


def _draw(inputs: dict[str, Any]) -> Drawing:
    source = inputs["object"]["content"]["value"]
    size, color = inputs["font_size"], inputs["color"]
    if inputs["object"]["type"] == "diagram":
        return diagram_svg(source, size=size, color=color)
    display = inputs["display"] is not False
    return formula_svg(source, display=display, size=size or SIZE_DEFAULT, color=color)

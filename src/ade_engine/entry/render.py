"""Draw one formula or diagram in the requested formats (kind `object_render`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ade_engine.channel import ARTIFACTS_FOLDER, Channel
from ade_engine.render.diagram import diagram_svg
from ade_engine.render.formula import SIZE_DEFAULT, formula_svg
from ade_engine.render.raster import png_size, to_png
from ade_engine.render.safe_svg import Drawing

FOLDER = Path(ARTIFACTS_FOLDER)


def main(inputs: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Write `artifacts/<type>.<format>` and return the size of the drawing."""
    kind = inputs["object"]["type"]
    drawing = _draw(inputs)
    FOLDER.mkdir(exist_ok=True)
    size: dict[str, Any] = {"width": drawing.width, "height": drawing.height}
    if kind == "equation":
        size["baseline"] = drawing.baseline
    for form in inputs["formats"]:
        name = f"{kind}.{form}"
        if form == "svg":
            (FOLDER / name).write_text(drawing.svg, encoding="utf-8")
            channel.artifact(name, kind=kind, metadata=size)
        else:
            png = to_png(drawing.svg, scale=inputs["scale"])
            (FOLDER / name).write_bytes(png)
            width, height = png_size(png)
            pixels = {"width": width, "height": height, "scale": inputs["scale"]}
            channel.artifact(name, kind=kind, metadata=pixels)
    return {**size, "formats": inputs["formats"], "drawn_by": drawing.drawn_by}


def _draw(inputs: dict[str, Any]) -> Drawing:
    source = inputs["object"]["content"]["value"]
    font_size, color = inputs["font_size"], inputs["color"]
    if inputs["object"]["type"] == "diagram":
        return diagram_svg(source, size=font_size, color=color)
    display = inputs["display"] is not False
    return formula_svg(source, display=display, size=font_size or SIZE_DEFAULT, color=color)

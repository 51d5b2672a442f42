"""Count how many of the formulas of a list are drawn right: by mathtext, by ziamath, by ADE.

A drawing is right if nothing was raised, no command is left standing as text, and no one who looked
at it wrote down what is wrong (`tests/formulas.toml`). `--sheets FOLDER` draws what to look at.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import re
import statistics
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from PIL import Image, ImageDraw
from rich.console import Console
from rich.table import Table

FORMULAS = Path(__file__).parents[1] / "tests" / "formulas.toml"
SIZE = 20
SCALE = 2
ROWS_ON_A_SHEET = 13
COLUMN_PIXELS = 560
NAME_PIXELS = 170
SHORT = r"\int_0^1 x^2\,dx"
SPEED_ROUNDS = 100
COMMAND_LEFT = re.compile(r"<m[iot]\w*[^>]*>[^<]*\\[a-zA-Z]+")


@dataclass(frozen=True, slots=True)
class Formula:
    """Hold a formula and what people saw to be wrong, by who drew it."""

    name: str
    latex: str
    wrong: dict[str, str]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Hold what came of one formula: a picture, or why there is none."""

    formula: Formula
    png: bytes | None
    fault: str
    seconds: float


def mathtext(latex: str) -> tuple[bytes, str]:
    """Draw as matplotlib does, in the font that comes nearest to TeX's."""
    from matplotlib.figure import Figure

    figure = Figure()
    one_line = " ".join(latex.split())  # a second line would start a second text
    figure.text(0, 0, f"${one_line}$", fontsize=SIZE * 0.72, math_fontfamily="cm")
    kept = io.BytesIO()
    figure.savefig(kept, dpi=100 * SCALE, bbox_inches="tight", pad_inches=0.03)
    return kept.getvalue(), ""


def bare_ziamath(latex: str) -> tuple[bytes, str]:
    """Draw as ziamath does when it is left alone: importing ADE's part would change it."""
    import typst
    import ziamath

    drawn = ziamath.Latex(latex, size=SIZE)
    page = b"""#set page(width: auto, height: auto, margin: 0pt, fill: none)
        #image(bytes(sys.inputs.svg), format: "svg")"""
    png = typst.compile(page, format="png", ppi=96 * SCALE, sys_inputs={"svg": drawn.svg()})
    assert isinstance(png, bytes)
    left = COMMAND_LEFT.search(drawn.mathmlstr())
    return png, f"left as text: {left[0][-30:]}" if left else ""


def ade(latex: str) -> tuple[bytes, str]:
    """Draw as ADE does."""
    from ade_engine.render import formula_svg, to_png

    return to_png(formula_svg(latex, size=SIZE).svg, scale=SCALE), ""


CONTESTANTS: dict[str, Callable[[str], tuple[bytes, str]]] = {
    "mathtext": mathtext,
    "ziamath": bare_ziamath,
    "ade": ade,
}


def read() -> tuple[dict[str, str], list[Formula]]:
    held = tomllib.loads(FORMULAS.read_text())
    formulas = [Formula(f["name"], f["latex"], f.get("wrong", {})) for f in held["formula"]]
    return held["judged"], formulas


def draw(contestant: str, formula: Formula) -> Drawn:
    started = time.perf_counter()
    try:
        png, fault = CONTESTANTS[contestant](formula.latex)
    except Exception as error:
        last = str(error).strip().rpartition("\n")[2] or type(error).__name__
        return Drawn(formula, None, f"raised: {last[:100]}", time.perf_counter() - started)
    return Drawn(
        formula, png, fault or formula.wrong.get(contestant, ""), time.perf_counter() - started
    )


def draw_all(contestant: str) -> list[Drawn]:
    """Draw every formula in its own process."""
    _, formulas = read()
    draw(contestant, formulas[0])  # imports and fonts do not count
    return [draw(contestant, formula) for formula in formulas]


def speed() -> tuple[float, float]:
    """Return the median seconds of ADE for one short formula, warm: as SVG, and then as PNG."""
    from ade_engine.render import formula_svg, to_png

    svg, png = [], []
    for _ in range(SPEED_ROUNDS):
        started = time.perf_counter()
        picture = formula_svg(SHORT)
        drawn = time.perf_counter()
        to_png(picture.svg, scale=SCALE)
        svg.append(drawn - started)
        png.append(time.perf_counter() - drawn)
    return statistics.median(svg), statistics.median(png)


def show(results: dict[str, list[Drawn]], judged: dict[str, str], console: Console) -> None:
    table = Table(title="formulas drawn right", title_justify="left")
    for heading in ("by", "right", "raised or left text", "wrong to the eye", "median, with PNG"):
        table.add_column(heading, justify="left" if heading == "by" else "right")
    for contestant, drawn in results.items():
        faults = [one for one in drawn if one.fault]
        seen = sum(one.fault == one.formula.wrong.get(contestant) for one in faults)
        table.add_row(
            contestant,
            f"{len(drawn) - len(faults)} of {len(drawn)}",
            str(len(faults) - seen),
            str(seen),
            f"{statistics.median(one.seconds for one in drawn) * 1000:.1f} ms",
        )
    console.print(table)
    for contestant, drawn in results.items():
        for one in drawn:
            if one.fault:
                console.print(f"{contestant}: {one.formula.name}: {one.fault}", markup=False)
    for package, looked_at in judged.items():
        if version(package) != looked_at:
            console.print(
                f"{package} is {version(package)}; the drawings that were judged are of "
                f"{looked_at}: look again (--sheets).",
                style="red",
            )


def sheets(results: dict[str, list[Drawn]], folder: Path) -> None:
    """Draw the pictures side by side, a line for each formula."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = list(zip(*results.values(), strict=True))
    for start in range(0, len(lines), ROWS_ON_A_SHEET):
        strips = [_strip(line) for line in lines[start : start + ROWS_ON_A_SHEET]]
        sheet = Image.new("RGB", (strips[0].width, sum(s.height for s in strips)), "white")
        below = 0
        for strip in strips:
            sheet.paste(strip, (0, below))
            below += strip.height
        sheet.save(folder / f"sheet-{start // ROWS_ON_A_SHEET + 1:02}.png")


def _strip(line: tuple[Drawn, ...]) -> Image.Image:
    pictures = [
        Image.open(io.BytesIO(one.png)).convert("RGBA") if one.png else None for one in line
    ]
    for picture in pictures:
        if picture is not None:
            picture.thumbnail((COLUMN_PIXELS - 20, 400))
    height = max([40, *(picture.height + 16 for picture in pictures if picture is not None)])
    strip = Image.new("RGB", (NAME_PIXELS + COLUMN_PIXELS * len(line), height), "white")
    pen = ImageDraw.Draw(strip)
    pen.line((0, 0, strip.width, 0), fill="#cccccc")
    pen.text((6, 8), line[0].formula.name, fill="black")
    for at, (one, picture) in enumerate(zip(line, pictures, strict=True)):
        left = NAME_PIXELS + COLUMN_PIXELS * at
        if picture is None:
            pen.text((left, 8), one.fault[:85], fill="red")
        else:
            strip.paste(picture, (left, 8), picture)
    return strip


def _opened(png: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(png)).convert("RGBA")
    picture.thumbnail((COLUMN_PIXELS - 20, 400))
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench formulas", description=__doc__)
    parser.add_argument("--sheets", type=Path, help="where to draw what people look at")
    asked = parser.parse_args()
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        drawn = pool.map(draw_all, CONTESTANTS, chunksize=1)
        svg, png = pool.apply(speed)
    results = dict(zip(CONTESTANTS, drawn, strict=True))
    console = Console()
    show(results, read()[0], console)
    console.print(
        f"ADE draws {SHORT} in {svg * 1000:.2f} ms as SVG, and makes a PNG of it in "
        f"{png * 1000:.2f} ms more.\nIts repairs were made for this list; what it does with other "
        "formulas is not counted here.",
        markup=False,
    )
    if asked.sheets:
        sheets(results, asked.sheets)


if __name__ == "__main__":
    main()

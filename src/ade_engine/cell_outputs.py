"""Turn what code leaves open into files: figures of matplotlib, tables of polars and pandas."""

import os
import sys
from typing import Any

from ade_engine.channel import Channel

FOLDER = "artifacts"
FIGURE_FORMATS = ("png", "svg", "pdf")
LIBRARIES = ("numpy", "polars", "pandas")
ROWS_IN_RESULT_MAX = 1_000
ROWS_SHOWN = 20
# The same figure is the same file: nothing of the moment in it.
TIMELESS: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def library_of(value: Any) -> str | None:
    """Name the library of arrays and tables that a value comes from."""
    name = type(value).__module__.partition(".")[0]
    return name if name in LIBRARIES else None


def keep_figures(formats: list[str], channel: Channel) -> None:
    """Write the figures that are still open, if matplotlib was used at all."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    wanted = [one for one in formats if one in FIGURE_FORMATS] if formats else ["png"]
    if pyplot is None or not wanted:
        return
    pyplot.rcParams["svg.hashsalt"] = "ade"
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        width, height = (round(float(side * figure.dpi)) for side in figure.get_size_inches())
        for format_ in wanted:
            name = _free_name(f"figure-{number}", format_)
            figure.savefig(f"{FOLDER}/{name}", format=format_, metadata=TIMELESS[format_])
            channel.artifact(name, kind="plot", metadata={"width": width, "height": height})
        pyplot.close(figure)


def keep_table(value: Any, formats: list[str], channel: Channel) -> dict[str, Any] | None:
    """Write a table as CSV; return its summary if it has too many rows for a result."""
    if not is_table(value):
        return None
    rows, columns = (int(side) for side in value.shape)
    wanted = "csv" in formats if formats else True
    if wanted:
        name = _free_name("result", "csv")
        _write_csv(value, f"{FOLDER}/{name}")
        channel.artifact(name, kind="table", metadata={"rows": rows, "columns": columns})
    if rows <= ROWS_IN_RESULT_MAX:
        return None
    return {
        "rows": rows,
        "columns": [str(column) for column in value.columns],
        "head": value.head(ROWS_SHOWN),
        "artifact": name if wanted else None,
    }


def is_table(value: Any) -> bool:
    """Tell whether a value is a table of polars or pandas."""
    return library_of(value) in {"polars", "pandas"} and type(value).__name__ == "DataFrame"


def _write_csv(table: Any, path: str) -> None:
    if library_of(table) == "polars":
        table.write_csv(path)
    else:
        table.to_csv(path, index=False)


def _free_name(stem: str, ending: str) -> str:
    """Choose a name that the code has not used itself."""
    os.makedirs(FOLDER, exist_ok=True)
    number, name = 1, f"{stem}.{ending}"
    while os.path.lexists(f"{FOLDER}/{name}"):
        number += 1
        name = f"{stem}-{number}.{ending}"
    return name

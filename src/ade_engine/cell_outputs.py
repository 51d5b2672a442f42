"""Turn what a cell produced into its result (JSON) and into files: open figures, tables."""

import math
import os
import sys
from collections.abc import Callable, Mapping, Set
from dataclasses import asdict, is_dataclass
from typing import Any

from ade_engine.channel import ARTIFACTS_FOLDER, Channel, ResultNotJson

FIGURE_FORMATS = ("png", "svg", "pdf")
LIBRARIES = ("numpy", "polars", "pandas")
REPR_CHARS_MAX = 1_000
DEPTH_MAX = 100
ROWS_IN_RESULT_MAX = 1_000
ROWS_SHOWN = 20
# Dates and versions are left out, so that the same figure gives the same file.
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def keep_figures(formats: list[str], channel: Channel) -> None:
    """Write the matplotlib figures that are still open, and close them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    wanted = [one for one in formats if one in FIGURE_FORMATS] if formats else ["png"]
    if pyplot is None or not wanted:
        return
    pyplot.rcParams["svg.hashsalt"] = "ade"
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        width, height = (round(float(side * figure.dpi)) for side in figure.get_size_inches())
        for format_ in wanted:
            name = _unused_name(f"figure-{number}", format_)
            figure.savefig(f"{ARTIFACTS_FOLDER}/{name}", format=format_, metadata=METADATA[format_])
            channel.artifact(name, kind="plot", metadata={"width": width, "height": height})
        pyplot.close(figure)


def keep_table(value: Any, formats: list[str], channel: Channel) -> dict[str, Any] | None:
    """Write a table as CSV; return its summary if it has too many rows for a result."""
    if not _is_table(value):
        return None
    rows, columns = (int(side) for side in value.shape)
    wanted = "csv" in formats if formats else True
    if wanted:
        name = _unused_name("result", "csv")
        _write_csv(value, f"{ARTIFACTS_FOLDER}/{name}")
        channel.artifact(name, kind="table", metadata={"rows": rows, "columns": columns})
    if rows <= ROWS_IN_RESULT_MAX:
        return None
    return {
        "rows": rows,
        "columns": [str(column) for column in value.columns],
        "head": value.head(ROWS_SHOWN),
        "artifact": name if wanted else None,
    }


def encode(value: Any, depth: int = 0) -> Any:
    """Turn a value into JSON; one that has no equivalent there becomes its bounded `repr`."""
    if value is None or isinstance(value, str | bool | int):
        return _builtin(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if depth > DEPTH_MAX:
        raise ResultNotJson("it refers to itself, or is nested too deeply")
    if isinstance(value, Mapping):
        return {str(key): encode(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | Set):
        return [encode(item, depth + 1) for item in value]
    for convert in (_dataclass, _array, _date):
        if (converted := convert(value)) is not None:
            return encode(converted, depth + 1)
    return {"repr": repr(value)[:REPR_CHARS_MAX]}


def _builtin(value: Any) -> Any:
    """Convert an instance of a subclass to the builtin type, so that its methods are not called."""
    for kind in (bool, int, str):
        if isinstance(value, kind):
            return kind(value)
    return None


def _dataclass(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else None


def _array(value: Any) -> Any:
    """Return the builtin values of an array, a series or a table."""
    if _library_of(value) is None:
        return None
    if _is_table(value):
        return value.to_dicts() if hasattr(value, "to_dicts") else value.to_dict("records")
    for name in ("tolist", "to_list", "item"):
        method: Callable[[], Any] | None = getattr(value, name, None)
        if callable(method):
            return method()
    return None


def _date(value: Any) -> Any:
    method = getattr(value, "isoformat", None)
    return str(method()) if callable(method) and not isinstance(value, type) else None


def _library_of(value: Any) -> str | None:
    """Return which of the libraries of arrays and tables defines the type of a value."""
    name = type(value).__module__.partition(".")[0]
    return name if name in LIBRARIES else None


def _is_table(value: Any) -> bool:
    return _library_of(value) in {"polars", "pandas"} and type(value).__name__ == "DataFrame"


def _write_csv(table: Any, path: str) -> None:
    if _library_of(table) == "polars":
        table.write_csv(path)
    else:
        table.to_csv(path, index=False)


def _unused_name(stem: str, ending: str) -> str:
    """Choose a file name that the cell has not used itself."""
    os.makedirs(ARTIFACTS_FOLDER, exist_ok=True)
    number, name = 1, f"{stem}.{ending}"
    while os.path.lexists(f"{ARTIFACTS_FOLDER}/{name}"):
        number += 1
        name = f"{stem}-{number}.{ending}"
    return name

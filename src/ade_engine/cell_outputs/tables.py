"""Frames of pandas and polars: as records for people, as CSV and Parquet for programs.

The index of a pandas frame is kept as its first columns, unless it only counts the rows. Columns
with equal names are told apart by a number: `a`, `a.1`.
"""

import json
from functools import partial
from importlib.util import find_spec
from typing import Any

from ade_engine.cell_outputs.artifacts import ArtifactWriter
from ade_engine.cell_outputs.values import encode, is_instance

ROWS_IN_RESULT_MAX = 1_000
CELLS_IN_RESULT_MAX = 50_000
RESULT_CHARS_MAX = 256 * 1024
ROWS_SHOWN = 20
FRAMES_AND_SERIES = (
    ("pandas", "DataFrame"),
    ("pandas", "Series"),
    ("polars", "DataFrame"),
    ("polars", "Series"),
    ("pyarrow", "Table"),
)
LEVELS = " / "  # joins the levels of a column's name


def is_frame_or_series(value: Any) -> bool:
    """Tell whether a value may be shown as a table."""
    return any(is_instance(value, module, name) for module, name in FRAMES_AND_SERIES)


def as_frame(value: Any) -> Any:
    """Return the frame of a value: itself, or that of a series with labels; None if it is neither.

    A series without labels of its own is a list.
    """
    if is_instance(value, "pandas", "DataFrame") or is_instance(value, "polars", "DataFrame"):
        return value
    if is_instance(value, "pyarrow", "Table"):
        import polars

        return polars.from_arrow(value)
    if not is_frame_or_series(value):
        return None
    has_labels = hasattr(value, "index") and not counts_rows(value.index)
    if not has_labels and len(value) <= ROWS_IN_RESULT_MAX:
        return None
    return value.to_frame("value" if value.name in (None, "") else value.name)


def counts_rows(index: Any) -> bool:
    """Tell whether an index holds nothing but the numbers of the rows."""
    is_range = is_instance(index, "pandas", "RangeIndex")
    return is_range and index.name is None and index.start == 0 and index.step == 1


def table_json(frame: Any, artifact: str | None) -> Any:
    """Return the rows as objects, or a summary if there are too many of them."""
    rows, columns = (int(side) for side in frame.shape)
    if rows <= ROWS_IN_RESULT_MAX and rows * columns <= CELLS_IN_RESULT_MAX:
        found = encode(records(frame))
        if _fits(found):
            return found
    head = encode(records(frame.head(ROWS_SHOWN)))
    while head and not _fits(head):
        head = head[: len(head) // 2]
    return {"rows": rows, "columns": names_of(frame), "head": head, "artifact": artifact}


def _fits(found: Any) -> bool:
    return len(json.dumps(found)) <= RESULT_CHARS_MAX


def records(frame: Any) -> list[dict[str, Any]]:
    """Return each row as an object."""
    if is_instance(frame, "polars", "DataFrame"):
        rows: list[dict[str, Any]] = frame.to_dicts()
        return rows
    names, columns = names_of(frame), [column.tolist() for column in _columns(frame)]
    if not columns:
        return [{} for _ in range(len(frame))]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def names_of(frame: Any) -> list[str]:
    """Return the names of the columns, those of the index first, each once."""
    if is_instance(frame, "polars", "DataFrame"):
        return list(frame.columns)
    return _unique([*_index_names(frame), *(_label(column) for column in frame.columns)])


def _columns(frame: Any) -> list[Any]:
    levels = range(len(_index_names(frame)))
    return [
        *(frame.index.get_level_values(level) for level in levels),
        *(frame.iloc[:, position] for position in range(frame.shape[1])),
    ]


def _index_names(frame: Any) -> list[str]:
    if counts_rows(frame.index):
        return []
    names = list(frame.index.names)
    unnamed = ["index"] if len(names) == 1 else [f"level_{level}" for level in range(len(names))]
    return [
        other if name is None else _label(name) for name, other in zip(names, unnamed, strict=True)
    ]


def _label(name: Any) -> str:
    return LEVELS.join(map(str, name)) if isinstance(name, tuple) else str(name)


def _unique(names: list[str]) -> list[str]:
    found: list[str] = []
    used = set(names)
    for name in names:
        number, unique = 0, name
        while unique in found or (number and unique in used):
            number += 1
            unique = f"{name}.{number}"
        found.append(unique)
    return found


def keep_table(frame: Any, stem: str, writer: ArtifactWriter) -> str | None:
    """Write a frame in the wanted formats; return the name of one of the files."""
    rows, columns = (int(side) for side in frame.shape)
    about = {"rows": rows, "columns": columns}
    written = [
        writer.write(stem, format_, partial(write, frame), kind="table", metadata=about)
        for format_, write in (("csv", _write_csv), ("parquet", _write_parquet))
        if writer.wants(format_)
    ]
    return next((name for name in written if name is not None), None)


def _write_csv(frame: Any, path: str) -> None:
    if is_instance(frame, "polars", "DataFrame"):
        nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
        if nested:
            raise ValueError(f"CSV cannot hold the lists or structs of {nested[0]!r}")
        frame.write_csv(path)
    elif names := _index_names(frame):
        frame.to_csv(path, index_label=names)
    else:
        frame.to_csv(path, index=False)


def _write_parquet(frame: Any, path: str) -> None:
    if is_instance(frame, "polars", "DataFrame"):
        frame.write_parquet(path)
        return
    if find_spec("pyarrow") is not None:
        try:
            own_names = _unique([_label(column) for column in frame.columns])
            frame.set_axis(own_names, axis=1).to_parquet(path)
            return
        except Exception:  # a column of several types
            pass
    _polars_frame(frame).write_parquet(path)


def _polars_frame(frame: Any) -> Any:
    """Convert a frame of pandas; a column of several types becomes text."""
    import polars

    columns = []
    for name, column in zip(names_of(frame), _columns(frame), strict=True):
        is_plain = getattr(column.dtype, "kind", "O") in "iufbM" and hasattr(column, "to_numpy")
        values = column.to_numpy() if is_plain else _without_missing(column)
        try:
            columns.append(polars.Series(name, values))
        except Exception:
            text = [None if value is None else str(value) for value in _without_missing(column)]
            columns.append(polars.Series(name, text, dtype=polars.String))
    return polars.DataFrame(columns)


def _without_missing(column: Any) -> list[Any]:
    """Return the values of a column, and None for those that are missing."""
    missing = column.isna()
    pairs = zip(column.tolist(), missing.tolist(), strict=True)
    return [None if is_missing else value for value, is_missing in pairs]

"""Dataframes in and out, with polars or pandas if one of them is installed."""

import io
import sys
from importlib.util import find_spec
from typing import Any

from ade.client.errors import ClientError

POLARS, PANDAS = "polars", "pandas"


class NoFrameLibrary(ClientError):
    """Neither polars nor pandas can do this here."""


def is_frame(value: Any) -> bool:
    """Tell whether a value is a dataframe of polars or pandas; neither is imported for that."""
    return library_of(value) is not None


def library_of(value: Any) -> str | None:
    """Return which library a dataframe belongs to."""
    for name in (POLARS, PANDAS):
        library = sys.modules.get(name)
        if library is not None and isinstance(value, library.DataFrame):
            return name
    return None


def frame_bytes(frame: Any) -> bytes:
    """Write a dataframe as Parquet."""
    held = io.BytesIO()
    if library_of(frame) == POLARS:
        frame.write_parquet(held)
        return held.getvalue()
    try:
        frame.to_parquet(held)
    except ImportError:
        _of_pandas(frame).write_parquet(held)
    return held.getvalue()


def read_frame(content: bytes, format: str, library: str | None = None) -> Any:
    """Read Parquet, CSV or JSON lines as a dataframe of `library`, or of whichever is installed."""
    name = library or next((one for one in (POLARS, PANDAS) if find_spec(one)), None)
    if name not in (POLARS, PANDAS):
        raise NoFrameLibrary("Install polars or pandas to read dataframes.")
    if format not in ("parquet", "csv", "jsonl"):
        raise NoFrameLibrary(f"A file of format {format!r} is no table; read its bytes instead.")
    held = io.BytesIO(content)
    if name == POLARS:
        import polars

        if format == "parquet":
            return polars.read_parquet(held)
        return polars.read_csv(held) if format == "csv" else polars.read_ndjson(held)
    import pandas

    if format == "csv":
        return pandas.read_csv(held)
    if format == "jsonl":
        return pandas.read_json(held, lines=True)
    try:
        return pandas.read_parquet(held)
    except ImportError:
        if find_spec(POLARS) is None:
            raise NoFrameLibrary("pandas needs pyarrow to read Parquet; install it.") from None
        import polars

        table = polars.read_parquet(held)
        return pandas.DataFrame({column.name: column.to_numpy() for column in table})


def _of_pandas(frame: Any) -> Any:
    """Make a frame of polars of one of pandas, where pandas cannot write Parquet itself."""
    if find_spec(POLARS) is None:
        raise NoFrameLibrary("pandas needs pyarrow or polars to write Parquet; install one.")
    import polars

    return polars.DataFrame({str(name): polars.Series(frame[name].to_list()) for name in frame})

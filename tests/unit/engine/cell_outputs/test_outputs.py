"""Values become JSON and artifacts; what ADE cannot render is a warning."""

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest

from ade_engine.cell_outputs import Outputs
from ade_engine.cell_outputs.tables import ROWS_IN_RESULT_MAX
from ade_engine.channel import Channel


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(tmp_path)
    yield
    os.chdir(before)


def kept(value: Any, *formats: str) -> tuple[Any, list[str], list[str]]:
    """Return the JSON of a value, the names of its artifacts, and the warnings."""
    stream = io.StringIO()
    result = Outputs(list(formats), Channel(stream)).result(value)
    messages = [json.loads(line) for line in stream.getvalue().splitlines()]
    names = [message["artifact"]["name"] for message in messages if "artifact" in message]
    return result, names, [message["warning"] for message in messages if "warning" in message]


BOTH = ["result.csv", "result.parquet"]


def test_the_index_of_a_frame_is_kept() -> None:
    frame = pandas.DataFrame({"n": [1, 2]}, index=pandas.Index(["a", "b"], name="key"))
    assert kept(frame) == ([{"key": "a", "n": 1}, {"key": "b", "n": 2}], BOTH, [])
    assert Path("artifacts/result.csv").read_text() == "key,n\na,1\nb,2\n"
    assert polars.read_parquet("artifacts/result.parquet").to_dicts()[0] == {"key": "a", "n": 1}


def test_an_index_that_counts_rows_is_not() -> None:
    assert kept(pandas.DataFrame({"n": [1]}))[0] == [{"n": 1}]


def test_no_column_is_lost_to_an_equal_name() -> None:
    frame = pandas.DataFrame([[1, 2, 3]], columns=["a", "a", "a.1"])
    assert kept(frame)[0] == [{"a": 1, "a.2": 2, "a.1": 3}]


def test_csv_that_cannot_be_written_is_a_warning() -> None:
    result, names, (warning,) = kept(polars.DataFrame({"a": [[1], [2, 3]]}))
    assert result == [{"a": [1]}, {"a": [2, 3]}]
    assert names == ["result.parquet"]
    assert "result.csv was not written" in warning


def test_a_column_of_several_types_is_kept_as_text() -> None:
    result, names, warnings = kept(pandas.DataFrame({"a": [1, "x", None]}))
    assert ([row["a"] for row in result], names, warnings) == ([1, "x", None], BOTH, [])
    assert polars.read_parquet("artifacts/result.parquet")["a"].to_list() == ["1", "x", None]


def test_missing_values_are_null() -> None:
    frame = pandas.DataFrame({"d": [pandas.NaT], "i": pandas.array([pandas.NA], "Int64")})
    assert kept(frame)[0] == [{"d": None, "i": None}]


def test_a_wide_or_heavy_table_is_summed_up() -> None:
    heavy = polars.DataFrame({"a": ["x" * 100_000] * 20})
    result = kept(heavy)[0]
    assert (result["rows"], result["artifact"], len(result["head"])) == (20, "result.csv", 2)


def test_a_series_is_a_list_or_a_table() -> None:
    assert kept(pandas.Series([1, 2])) == ([1, 2], [], [])
    assert kept(polars.Series([1, 2])) == ([1, 2], [], [])
    assert kept(pandas.Series([1], index=["a"]))[0] == [{"index": "a", "value": 1}]
    assert kept(polars.Series(range(ROWS_IN_RESULT_MAX + 1)))[0]["rows"] == ROWS_IN_RESULT_MAX + 1


def test_only_wanted_formats_are_written() -> None:
    assert kept(pandas.DataFrame({"n": [1]}), "json")[1] == []
    assert kept(pandas.DataFrame({"n": [1]}), "parquet")[1] == ["result.parquet"]


class Broken:
    """Fail to show itself."""

    def _repr_html_(self) -> str:
        raise RuntimeError("no")

    def _repr_svg_(self) -> str:
        return "<svg xmlns='http://www.w3.org/2000/svg'/>"

    def __repr__(self) -> str:
        return "broken"


def test_an_output_that_fails_is_a_warning() -> None:
    result, names, (warning,) = kept(Broken())
    assert (result, names) == ({"repr": "broken", "artifacts": ["result.svg"]}, ["result.svg"])
    assert warning == "_repr_html_ of the value failed: RuntimeError: no"


def test_a_class_is_not_shown() -> None:
    assert kept(Broken)[1] == []

"""The output is laid out before it is written."""

from ade_engine.pipeline.write_output import unique_names


def test_names_are_made_different() -> None:
    assert unique_names(["ID", "id", "x", "ID"]) == ["ID", "id (2)", "x", "ID (3)"]

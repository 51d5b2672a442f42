"""The tree of a submitted document."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.engine.export.exported import code, drawn, image, plain, table, text

from ade_engine.export import document_tree as tree
from ade_engine.export.document_reader import PIECES_MAX, read_document
from ade_engine.export.document_tree import Blocks
from ade_engine.export.export_errors import DocumentTooLarge
from ade_engine.export.export_warnings import WARNINGS_MAX, ExportWarnings


def blocks(given: dict[str, Any]) -> Blocks:
    """Read one object."""
    [item] = read_document({"objects": [given]}, Path(), ExportWarnings()).items
    return item.blocks


def sides(rows: list[list[Any]], alignment: list[str] | None = None) -> tuple[str, ...]:
    """Return the alignment of the columns of a table."""
    [found] = blocks(table(["a"] * len(rows[0]), rows, alignment=alignment))
    assert isinstance(found, tree.TableBlock)
    return found.alignment


def test_numbers_are_aligned_right() -> None:
    rows = [
        [1, "1,234.5", "-3 %", "1e-9", "2026-01-01", True, None],
        [2.5, "", None, "7", "x", 1, None],
    ]
    assert sides(rows) == ("right", "right", "right", "right", "left", "left", "left")


def test_an_explicit_alignment_is_used() -> None:
    assert sides([[1, 2, "a", 3]], ["left", "center", "right"]) == (
        "left",
        "center",
        "right",
        "right",
    )
    assert sides([[1, "a"]], ["auto", "auto"]) == ("right", "left")


def test_short_rows_are_filled() -> None:
    [found] = blocks(table(["a", "b", "c", "d"], [[True, 1.5, None], ["x\ny", 2, "", 0]]))
    assert isinstance(found, tree.TableBlock)
    texts = [[tree.text_of(cell) for cell in row] for row in found.rows]
    assert texts == [["true", "1.5", "", ""], ["x y", "2", "", "0"]]


def test_numbers_are_written_for_people_or_plain_as_requested() -> None:
    rows: list[list[Any]] = [[12_345.678, 12_345.678], [1, 1]]
    [found] = blocks(table(["a", "b"], rows, number_format=["plain"]))
    assert isinstance(found, tree.TableBlock)
    texts = [[tree.text_of(cell) for cell in row] for row in found.rows]
    assert texts == [["12345.678", "12,345.68"], ["1", "1"]]


def test_outputs_follow_their_code_in_order() -> None:
    outputs = {
        "error": {"code": "PYTHON_EXCEPTION", "message": "bad", "details": {"traceback": "T\n"}},
        "images": [image(drawn(2, 3), caption="c")["content"]],
        "result_json": {"é": [1]},
        "stderr": "\x1b[31mw\x1b[0m\n",
        "stdout": "out\n\n",
    }
    found = blocks(code("1 + 1\n", outputs))
    assert [type(block).__name__ for block in found] == [
        "CodeBlock",
        "OutputBlock",
        "OutputBlock",
        "OutputBlock",
        "ImageBlock",
        "OutputBlock",
    ]
    assert found[0] == tree.CodeBlock("1 + 1", "python")
    assert found[1] == tree.OutputBlock("stdout", "out")
    assert found[2] == tree.OutputBlock("stderr", "w")
    assert found[3] == tree.OutputBlock("result", '{\n  "é": [\n    1\n  ]\n}')
    assert found[5] == tree.OutputBlock("error", "T\nPYTHON_EXCEPTION: bad")


def test_a_result_of_false_is_a_result_and_nothing_is_none() -> None:
    assert blocks(code("x", {"result_json": False}))[1:] == (tree.OutputBlock("result", "false"),)
    assert blocks(code("x", {"result_json": None, "stdout": "\n"}))[1:] == ()


def test_plain_text_is_not_markdown() -> None:
    assert blocks(plain("# a")) == (tree.Paragraph((tree.LiteralText("# a"),)),)


def test_an_object_without_an_id_is_named_by_its_number() -> None:
    warnings = ExportWarnings()
    read_document({"objects": [text("a"), text("[a](b:c)")]}, Path(), warnings)
    [as_json] = warnings.as_json()
    assert (as_json["code"], as_json["object_id"]) == ("link_removed", "number 2")


@pytest.mark.parametrize(
    "objects",
    [
        [text("- a\n" * PIECES_MAX)],
        [text("a\n\n" * (PIECES_MAX // 2 + 1))] * 2,
        [table(["a"] * 50, [[1] * 50] * 200)] * 2,
        [text("a", notes="a\n\n" * (PIECES_MAX + 1))],
        [text("| a |\n|---|\n" + "| b |\n" * PIECES_MAX)],
    ],
    ids=["list", "paragraphs", "tables", "notes", "table of Markdown"],
)
def test_too_many_pieces_are_rejected(objects: list[dict[str, Any]]) -> None:
    with pytest.raises(DocumentTooLarge, match="20,000 paragraphs, list items and table cells"):
        read_document({"objects": objects}, Path(), ExportWarnings())


def test_warnings_come_once_and_have_a_limit() -> None:
    warnings = ExportWarnings()
    for number in range(WARNINGS_MAX + 3):
        warnings.add("c", f"message {number}")
        warnings.add("c", f"message {number}")
    as_json = warnings.as_json()
    assert len(as_json) == WARNINGS_MAX + 1
    assert as_json[0] == {"code": "c", "message": "message 0"}
    assert as_json[-1] == {"code": "more_warnings", "message": "There are 6 more."}

"""Which objects share a slide."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.engine.export.exported import (
    HTML,
    code,
    drawn,
    equation,
    export,
    image,
    page_picture,
    table,
    text,
)

from ade_engine.export.document_reader import read_document
from ade_engine.export.document_tree import DocumentTree
from ade_engine.export.export_warnings import ExportWarnings
from ade_engine.export.slides import ROW_IMAGES_MAX, Slide, has_cover, rows_of, slides_of


def document(*objects: dict[str, Any], title: str = "") -> DocumentTree:
    """Read a document whose objects are named a, b, c and so on."""
    named = [one | {"object_id": name} for one, name in zip(objects, "abcdefghij", strict=False)]
    return read_document({"objects": named, "title": title}, Path(), ExportWarnings())


def shared(*objects: dict[str, Any]) -> list[str]:
    """Return the names of the objects of each slide."""
    return ["".join(item.name for item in slide.items) for slide in slides_of(document(*objects))]


HEAD, SUB, DEEP, TEXT = text("# A\n\nb"), text("## A"), text("### A"), text("a\n\n# B")


@pytest.mark.parametrize(
    ("objects", "slides"),
    [
        ([HEAD, TEXT, SUB, code("1")], ["ab", "cd"]),
        ([TEXT, HEAD, TEXT], ["a", "bc"]),
        ([TEXT, code("1"), DEEP], ["a", "b", "c"]),
        ([TEXT | {"slide": 1}, TEXT | {"slide": 1}, TEXT | {"slide": 2}], ["ab", "c"]),
        ([TEXT | {"slide": 1}, TEXT | {"slide": 2}, TEXT | {"slide": 1}], ["a", "b", "c"]),
        ([HEAD | {"slide": "x"}, HEAD | {"slide": "x"}], ["ab"]),
        ([TEXT | {"slide": 1}, HEAD, TEXT, SUB, TEXT | {"slide": 1}], ["a", "bc", "d", "e"]),
        ([TEXT | {"slide": 1}, TEXT, TEXT], ["a", "b", "c"]),
    ],
)
def test_objects_share_slides(objects: list[dict[str, Any]], slides: list[str]) -> None:
    assert shared(*objects) == slides


def test_no_objects_are_one_empty_slide() -> None:
    assert slides_of(document()) == [Slide(None, ())]


def test_the_first_heading_is_the_title_and_not_in_the_body() -> None:
    [slide] = slides_of(document(HEAD))
    assert slide.title is not None
    assert slide.title not in slide.body
    assert len(slide.body) == 1


def test_a_title_gets_a_cover_unless_the_first_slide_has_it() -> None:
    def covered(title: str) -> bool:
        made = document(text("# Waves"), title=title)
        return has_cover(made, slides_of(made))

    assert covered("Oscillations")
    assert not covered("waves")
    assert not covered("")


def test_slides_of_formulas_images_and_tables_only_are_centred() -> None:
    def middle(*objects: dict[str, Any]) -> bool:
        [slide] = slides_of(document(*objects))
        return slide.is_centred

    assert middle(text("# A"), equation("x"), table(["a"], []))
    assert not middle(HEAD, equation("x"))
    assert not middle(text("# A"))


def test_adjacent_images_of_a_slide_stand_side_by_side() -> None:
    picture = image(drawn(600, 600)) | {"slide": 1}
    [slide] = slides_of(document(picture, picture, text("a", slide=1), picture))
    assert [len(row) for row in rows_of(slide.body)] == [2, 1, 1]
    [many] = slides_of(document(*[picture] * (ROW_IMAGES_MAX + 1)))
    assert [len(row) for row in rows_of(many.body)] == [ROW_IMAGES_MAX, 1]
    export(picture, picture, view_mode="slide", formats=("pdf", "html"))
    shown = page_picture(1, width=320, height=180)
    red, between = (shown.getpixel((x, 80)) for x in (90, 160))
    assert isinstance(red, tuple)
    assert red[1] < 100
    assert between == (255, 255, 255)
    assert HTML.read_text().count('<div class="row">') == 1

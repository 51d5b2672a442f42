"""The inputs of `thumbnail_generate`."""

from typing import Any

import pytest
from pydantic import ValidationError

from ade.kinds import JobInputs
from ade.kinds.thumbnail_generate import (
    SIDE_PIXELS_MAX,
    SIZES_MAX,
    ThumbnailGenerate,
    ThumbnailInputs,
    ThumbnailOutputs,
)
from ade.worker.job_io import NoJobIO

OBJECT = {"type": "text", "content": {"format": "markdown", "value": "# a"}}
DOCUMENT = {"objects": [OBJECT]}
SIZE = {"width": 160, "height": 90}
LARGE = {"width": SIDE_PIXELS_MAX, "height": SIDE_PIXELS_MAX}


@pytest.mark.parametrize(
    "inputs",
    [
        {"document": DOCUMENT, "page": 3, "view_mode": "slide", "sizes": [SIZE]},
        {"object": OBJECT, "sizes": [SIZE, LARGE], "background": "transparent"},
    ],
)
async def test_a_page_or_an_object_is_accepted(inputs: dict[str, Any]) -> None:
    given = ThumbnailInputs.model_validate(inputs).model_dump(mode="json")
    prepared = await ThumbnailGenerate().prepare(JobInputs("w", "j", 1, given), NoJobIO())
    assert prepared.inputs["sizes"] == inputs["sizes"]
    assert prepared.files == {}


@pytest.mark.parametrize(
    "inputs",
    [
        {"sizes": [SIZE]},
        {"document": DOCUMENT},
        {"document": DOCUMENT, "object": OBJECT, "sizes": [SIZE]},
        {"object": OBJECT, "sizes": []},
        {"object": OBJECT, "sizes": [SIZE, SIZE]},
        {"object": OBJECT, "sizes": [SIZE | {"height": n} for n in range(1, SIZES_MAX + 2)]},
        {"object": OBJECT, "sizes": [{"width": 0, "height": 1}]},
        {"object": OBJECT, "sizes": [{"width": SIDE_PIXELS_MAX + 1, "height": 1}]},
        {"object": OBJECT, "sizes": [{"width": 1}]},
        {"object": OBJECT, "sizes": [LARGE, LARGE | {"height": 4_095}, LARGE | {"width": 4_095}]},
        {"object": OBJECT, "sizes": [SIZE], "page": 1},
        {"object": OBJECT, "sizes": [SIZE], "view_mode": "slide"},
        {"object": OBJECT, "sizes": [SIZE], "background": "red"},
        {"document": DOCUMENT, "sizes": [SIZE], "page": 0},
        {"object": {"type": "diagram", "content": {}}, "sizes": [SIZE]},
    ],
    ids=lambda inputs: str(inputs)[:70],
)
def test_invalid_thumbnail_requests_are_rejected(inputs: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ThumbnailInputs.model_validate(inputs)


def test_thumbnails_are_png() -> None:
    assert ThumbnailOutputs().formats == ["png"]
    with pytest.raises(ValidationError):
        ThumbnailOutputs.model_validate({"formats": ["svg"]})

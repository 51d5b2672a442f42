"""What a document can contain, and how its images are fetched."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import ValidationError

from ade.domain.errors import NotFound, Unavailable
from ade.kinds import JobIO, document
from ade.kinds.document import DocumentContent, fetch_images
from ade.worker.job_io import NoJobIO

DIGEST = "sha256:" + "0" * 64
OTHER = "sha256:" + "1" * 64


def text(value: str = "a", **more: Any) -> dict[str, Any]:
    """Return an object of text."""
    return {"type": "text", "content": {"value": value}, **more}


def image(**content: Any) -> dict[str, Any]:
    """Return an object of an image."""
    return {"type": "image", "content": content}


def code(value: str = "1", **outputs: Any) -> dict[str, Any]:
    """Return an object of code."""
    return {"type": "code", "content": {"value": value, "outputs": outputs}}


def table(columns: list[Any], rows: list[Any], **more: Any) -> dict[str, Any]:
    """Return an object of a table."""
    return {"type": "table", "content": {"columns": columns, "rows": rows, **more}}


def taken(*objects: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Validate a document; return the inputs of the job."""
    return DocumentContent.model_validate({"objects": list(objects), **more}).model_dump(
        mode="json"
    )


def test_every_type_of_object_is_accepted() -> None:
    given = [
        text("# a", object_id="1", notes="n", slide=1),
        {"type": "text", "content": {"format": "plain", "value": ""}, "slide": "first"},
        {"type": "equation", "content": {"format": "latex", "value": "x"}},
        code("x", stdout="o", stderr="e", result_json={"a": [1, None]}, error="bad"),
        code("y", error={"code": "C", "message": "m", "details": {"traceback": "t", "line": 3}}),
        {"type": "code", "content": {"format": "c++", "value": "int x;"}},
        image(digest=DIGEST, alt="a", caption="c", width_percent=50),
        image(data="AAAA", media_type="image/webp"),
        table(["a", "b"], [["x", 1], [None, 2.5], [True]], alignment=["auto", "right"]),
    ]
    objects = taken(*given, title="T", authors=["A"], language="pt-BR")["objects"]
    assert [one["type"] for one in objects] == [one["type"] for one in given]
    assert objects[3]["content"]["outputs"]["result_json"] == {"a": [1, None]}
    assert objects[8]["content"]["rows"] == [["x", 1], [None, 2.5], [True]]


@pytest.mark.parametrize(
    "one",
    [
        {"type": "diagram", "content": {"value": "a"}},
        {"content": {"value": "a"}},
        text("a", color="red"),
        text("a", object_id=""),
        text("a", slide=""),
        text("a", slide=1.5),
        text("x" * (document.TEXT_CHARS_MAX + 1)),
        text("a", notes="x" * (document.NOTES_CHARS_MAX + 1)),
        {"type": "text", "content": {"format": "html", "value": "a"}},
        {"type": "equation", "content": {"value": ""}},
        {"type": "equation", "content": {"value": "x" * (document.LATEX_CHARS_MAX + 1)}},
        {"type": "code", "content": {"format": "c d", "value": ""}},
        code("x" * (document.CODE_CHARS_MAX + 1)),
        code(stdout="x" * (document.OUTPUT_CHARS_MAX + 1)),
        code(result_json=["x" * document.OUTPUT_CHARS_MAX]),
        code(error={"message": "m", "details": {"a": "x" * document.OUTPUT_CHARS_MAX}}),
        code(images=[{"digest": DIGEST}] * (document.IMAGES_MAX + 1)),
        image(),
        image(digest=DIGEST, data="AAAA", media_type="image/png"),
        image(data="AAAA"),
        image(data="AAAA", media_type="image/svg+xml"),
        image(data="A" * (document.IMAGE_BASE64_CHARS_MAX + 1), media_type="image/png"),
        image(digest="sha256:../../etc/passwd"),
        image(digest=DIGEST + "\n"),
        image(digest=DIGEST, file="/etc/passwd"),
        image(digest=DIGEST, width_percent=101),
        table([], []),
        table(["a"], [["x", "y"]]),
        table(["a"] * (document.COLUMNS_MAX + 1), []),
        table(["a"], [[1]] * (document.ROWS_MAX + 1)),
        table(["a"] * 50, [[1]] * (document.CELLS_MAX // 50 + 1)),
        table(["a"], [["x" * (document.CELL_CHARS_MAX + 1)]]),
        table(["a"], [[[1]]]),
        table(["a"], [[{}]]),
        table(["a"], [[float("inf")]]),
        table(["a"], [[float("nan")]]),
        table(["a"], [{}]),
        table(["a"], [], alignment=["left", "left"]),
        table(["a"], [], alignment=["justify"]),
    ],
    ids=lambda one: str(one)[:60],
)
def test_values_beyond_a_limit_and_unknown_ones_are_rejected(one: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        taken(one)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"objects": [text()] * (document.OBJECTS_MAX + 1)},
        {"objects": [], "title": "x" * (document.TITLE_CHARS_MAX + 1)},
        {"objects": [], "authors": ["a"] * (document.AUTHORS_MAX + 1)},
        {"objects": [], "authors": [""]},
        {"objects": [], "language": "english"},
        {"objects": [], "language": 'en" onload="x'},
        {"objects": [], "language": "en\n"},
        {"objects": [], "date": "2026-01-01"},
        {"objects": [image(digest=DIGEST)] * (document.IMAGES_MAX + 1)},
        {"objects": [text("x" * document.TEXT_CHARS_MAX)] * 21},
        {"objects": [code("x" * document.CODE_CHARS_MAX)] * 11},
        {"objects": [text("a", notes="x" * document.NOTES_CHARS_MAX)] * 101},
        {"objects": [table(["a"] * 10, [["x" * 2_000] * 10] * 101)]},
    ],
    ids=lambda given: str(given)[:60],
)
def test_documents_have_limits_too(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DocumentContent.model_validate(given)


def cpu_seconds(act: Callable[[], object]) -> float:
    """Return the shortest CPU time of three tries; the others were disturbed."""
    took = []
    for _ in range(3):
        before = time.process_time()
        act()
        took.append(time.process_time() - before)
    return min(took)


@pytest.mark.parametrize(
    "given",
    [
        {"objects": [table(["a"], [[{}] * 330_000])]},
        {"objects": [table(["a"] * 50, [[{}] * 50] * 5_000)]},
        {"objects": [table(["a"], [{}] * 330_000)]},
        {"objects": [table(["a"], [[1] * 330_000])]},
        {"objects": [table([{}] * 330_000, [])]},
        {"objects": [table(["a"], [], alignment=[{}] * 330_000)]},
        {"objects": [{"type": "table"}] * 50_000},
        {"objects": [{"type": "table", "content": {"columns": []}}] * 2_000},
        {"objects": [{}] * 330_000},
        {"objects": [code(images=[{}] * 330_000)]},
        {"objects": [], "authors": [{}] * 330_000},
    ],
    ids=lambda given: str(given)[:70],
)
def test_a_long_list_of_errors_is_rejected_as_fast_as_it_is_read(
    given: dict[str, Any],
) -> None:
    written = json.dumps(given)

    def refuse() -> None:
        with pytest.raises(ValidationError) as refused:
            DocumentContent.model_validate(given)
        assert refused.value.error_count() < 5

    assert cpu_seconds(refuse) < 2 * cpu_seconds(lambda: json.loads(written)) + 0.01


def test_the_schema_lists_the_types_of_cells() -> None:
    rows = document.TableContent.model_json_schema()["properties"]["rows"]
    cell = rows["items"]["items"]
    assert [one["type"] for one in cell["anyOf"]] == [
        "string",
        "boolean",
        "integer",
        "number",
        "null",
    ]
    assert (rows["maxItems"], rows["items"]["maxItems"]) == (
        document.ROWS_MAX,
        document.COLUMNS_MAX,
    )


class Shelf:
    """Have some images, and count the requests."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def blob(self, workspace_id: str, digest: str) -> Path:
        """Return where the bytes are."""
        self.asked.append((workspace_id, digest))
        if digest == OTHER:
            raise NotFound("There is no such file.")
        return Path("/shelf") / digest[7:]


async def test_images_are_fetched_once_and_get_their_path() -> None:
    shelf = Shelf()
    objects = taken(
        image(digest=DIGEST),
        code(images=[{"digest": DIGEST}]),
        image(data="AA", media_type="image/png"),
    )["objects"]
    files = await fetch_images(objects, "w", cast(JobIO, shelf))
    place = "inputs/" + "0" * 64
    assert files == {place: Path("/shelf") / ("0" * 64)}
    assert shelf.asked == [("w", DIGEST)]
    assert objects[0]["content"]["file"] == place
    assert objects[1]["content"]["outputs"]["images"][0]["file"] == place
    assert "file" not in objects[2]["content"]


async def test_a_missing_image_is_an_error() -> None:
    with pytest.raises(NotFound):
        await fetch_images(taken(image(digest=OTHER))["objects"], "w", cast(JobIO, Shelf()))


async def test_without_a_catalogue_only_images_by_digest_fail() -> None:
    assert await fetch_images(taken(text())["objects"], "w", NoJobIO()) == {}
    with pytest.raises(Unavailable):
        await fetch_images(taken(image(digest=DIGEST))["objects"], "w", NoJobIO())

"""PDF pages have all of their content, and no untrusted text in them is markup."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typst
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops
from tests.unit.engine.export.exported import (
    code,
    drawn,
    equation,
    export,
    image,
    page_picture,
    plain,
    set_texts,
    table,
    text,
)

from ade_engine.export.characters import ZERO_WIDTH_SPACE

pytestmark = pytest.mark.slow

HOSTILE = [
    '#panic("markup")',
    "#pagebreak()",
    '#read("/etc/passwd")',
    '#import "content.typ": *',
    "#let data = 1; $ x^ $ @nobody <label>",
    "```#pagebreak()```",
    "*/ /* // [#]{}()]",
    r"\u{41} \#\*",
    "= heading\n- list\n+ enum\n/ term: x",
]


def inked(picture: Image.Image) -> tuple[int, int, int, int] | None:
    """Return the bounding box of everything that is not white."""
    blank = Image.new("RGB", picture.size, "white")
    difference = ImageChops.difference(picture, blank).convert("L")
    return difference.point([0] * 40 + [255] * 216).getbbox()


@pytest.mark.parametrize("view_mode", ["document", "slide"])
@pytest.mark.parametrize("evil", HOSTILE)
def test_typst_markup_is_literal_everywhere(evil: str, view_mode: str) -> None:
    result = export(
        plain(evil, object_id=evil, slide=1, notes=f"`` {evil} ``"),
        code(evil, {"stdout": evil, "error": evil, "result_json": evil}, slide=1),
        table([evil], [[evil]], caption=evil) | {"slide": 1},
        image(drawn(2, 2), alt=evil, caption=evil) | {"slide": 1},
        view_mode=view_mode,
        notes=True,
        title=evil,
        authors=[evil],
    )
    slide_pages = 5 if "\n" in evil else 3  # with several lines everywhere, the slide continues
    assert result["pages"] == (slide_pages if view_mode == "slide" else 1)
    shown = set_texts("slides.typ" if view_mode == "slide" else "document.typ")
    assert shown.count(evil.split("\n", maxsplit=1)[0]) >= 7


def test_a_page_has_all_of_its_content() -> None:
    result = export(
        text("# Head\n\nRunning *text* with `code`, [a link](https://a.b) and $x$.\n\n- item"),
        equation(r"\int_0^1 x\,dx"),
        code("print(1)", {"stdout": "out", "stderr": "err", "result_json": 1, "error": "bad"}),
        table(["column"], [["cell"]], caption="above"),
        image(drawn(30, 20), caption="below"),
        text("noted", notes="for me"),
        notes=True,
        title="Title",
        authors=["Ada"],
    )
    assert result == {"formats": ["pdf"], "view_mode": "document", "pages": 1, "warnings": []}
    shown = set_texts()
    words = (
        "Head,text,code,a link,item,print(1),out,err,bad,column,cell,above,below,for me,Title,Ada"
    )
    assert [word for word in words.split(",") if word not in shown] == []


def test_notes_are_on_pages_of_their_own_on_request() -> None:
    objects = [text("# A", notes="secret one"), text("# B"), text("# C", notes="secret two")]
    assert export(*objects, view_mode="slide")["pages"] == 3
    assert "secret" not in set_texts("slides.typ")
    assert export(*objects, view_mode="slide", notes=True)["pages"] == 5
    assert "secret two" in set_texts("slides.typ")
    export(*objects)
    assert "secret" not in set_texts()


def test_pages_are_a4_and_slides_sixteen_to_nine() -> None:
    export(text("a"))
    assert _page_size() == pytest.approx((595.28, 841.89), abs=0.1)
    export(text("a"), view_mode="slide")
    width, height = _page_size()
    assert width / height == pytest.approx(16 / 9, abs=0.001)


def _page_size() -> tuple[float, float]:
    """Return the size of the first page of the last PDF, by Typst."""
    source = Path("layout/size.typ")
    source.write_text(
        '#context [#metadata({let m = measure(image("/artifacts/document.pdf", page: 1));'
        " (m.width.pt(), m.height.pt())})<size>]"
    )
    [[width, height]] = json.loads(typst.query(source, "<size>", field="value", root=Path()))
    return width, height


FULL = "\n".join(f"{n}. Point number {n} of a slide that nobody shortened" for n in range(1, 61))


@pytest.mark.parametrize(
    ("objects", "pages"),
    [
        ([text(f"# Full\n\n{FULL}")], 5),
        ([code("line = 1\n" * 100)], 7),
        ([table([f"column {n}" for n in range(12)], [["value"] * 12] * 40)], 2),
        ([text("# Images"), *[image(drawn(900, 2_000))] * 3], 1),
        ([text("# Images"), *[image(drawn(900, 500), caption="what it shows")] * 7], 2),
        ([text("# Long"), *[image(drawn(900, 500), caption="words " * 250)] * 3], 5),
        ([equation(r"\begin{matrix}" + r"a & b \\" * 60 + r"\end{matrix}")], 1),
        ([text("# " + "Endless title " * 60 + "\n\nand its body")], 1),
        ([text("x" * 3_000)], 3),
    ],
    ids=[
        "text",
        "code",
        "table",
        "images",
        "captions",
        "long captions",
        "formula",
        "title",
        "word",
    ],
)
def test_a_slide_with_too_much_content_continues_within_its_margins(
    objects: list[dict[str, Any]], pages: int
) -> None:
    objects = [one | {"slide": 1} for one in objects]
    result = export(*objects, view_mode="slide")
    assert result["pages"] == pages
    for page in range(1, pages + 1):
        box = inked(page_picture(page, width=1280, height=720))
        assert box is not None
        left, top, right, bottom = box
        assert left >= 60
        assert top >= 40
        assert right <= 1280 - 60
        assert bottom <= 720 - 20


CONTENT = st.one_of(
    st.integers(1, 60).map(lambda n: text("word " * 7 * n)),
    st.integers(1, 40).map(lambda n: text("\n".join(f"- item {k}" for k in range(n)))),
    st.integers(1, 60).map(lambda n: code("value = compute(1, 2)\n" * n, {"stdout": "1\n" * n})),
    st.tuples(st.integers(1, 12), st.integers(1, 40)).map(
        lambda size: table([f"c{k}" for k in range(size[0])], [["value"] * size[0]] * size[1])
    ),
    st.tuples(st.integers(1, 900), st.integers(1, 900), st.integers(0, 500)).map(
        lambda size: image(drawn(size[0], size[1]), caption="w " * size[2])
    ),
    st.integers(1, 40).map(
        lambda n: equation(r"\begin{pmatrix}" + r"a & b \\" * n + r"\end{pmatrix}")
    ),
    st.integers(1, 40).map(lambda n: text("> " + "quoted words " * n)),
)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(CONTENT, min_size=1, max_size=6), st.booleans())
def test_whatever_is_on_a_slide_stays_within_its_margins(
    objects: list[dict[str, Any]], with_title: bool
) -> None:
    title = [text("# A title")] if with_title else []
    objects = [one | {"slide": 1} for one in (*title, *objects)]
    result = export(*objects, view_mode="slide")
    for page in range(1, result["pages"] + 1):
        left, top, right, bottom = inked(page_picture(page, width=640, height=360)) or (99,) * 4
        assert left >= 30
        assert top >= 20
        assert right <= 640 - 30
        assert bottom <= 360 - 10


def test_a_slide_that_continues_gives_a_warning() -> None:
    result = export(text("# Fine"), text(f"# Full\n\n{FULL}"), view_mode="slide", title="T")
    assert result["pages"] == 7
    assert result["warnings"] == [
        {
            "code": "slide_continued",
            "message": "Slide 3 has too much content for one page: it continues over 5 pages.",
        }
    ]
    assert FULL.splitlines()[-1].partition(". ")[2] in set_texts("slides.typ")


def test_the_pages_of_a_slide_have_its_title_and_size() -> None:
    def lines(page: int) -> list[int]:
        """Return the heights of the lines of text in the body, from the ink in their rows."""
        body = page_picture(page, width=1280, height=720).crop((60, 140, 1220, 660)).convert("L")
        rows = [min(body.crop((0, y, body.width, y + 1)).tobytes()) < 128 for y in range(520)]
        runs = "".join("x" if row else " " for row in rows).split()
        return [len(run) for run in runs]

    export(text("# Full\n\n" + "MMMM " * 40), view_mode="slide")
    usual = lines(1)[0]
    export(text("# Full\n\n" + "MMMM " * 900), view_mode="slide")
    assert lines(1)[0] == lines(2)[0] == usual
    title = (60, 40, 200, 130)
    first, second = (page_picture(page, width=1280, height=720).crop(title) for page in (1, 2))
    assert inked(first) is not None
    assert ImageChops.difference(first, second).getbbox() is None


def test_a_little_too_much_is_scaled_down_and_fills_its_lines() -> None:
    result = export(text("# Full\n\n" + "word " * 280), view_mode="slide")
    assert (result["pages"], result["warnings"]) == (1, [])
    above_the_foot = page_picture(1, width=1280, height=720).crop((0, 0, 1280, 650))
    box = inked(above_the_foot)
    assert box is not None
    assert box[2] > 1_100


@pytest.mark.parametrize("view_mode", ["document", "slide"])
def test_a_table_with_too_many_columns_gives_a_warning(view_mode: str) -> None:
    def codes(columns: int, cell: str) -> list[str]:
        shown = table(["column"] * columns, [[cell] * columns])
        return [one["code"] for one in export(shown, view_mode=view_mode)["warnings"]]

    assert codes(30, "a value") == ["table_too_wide"]
    assert codes(8, "some longer text that is wrapped") == []


def test_a_title_that_became_unreadable_gives_a_warning() -> None:
    [warning] = export(text("# " + "Endless title " * 60 + "\n\nb"), view_mode="slide")["warnings"]
    assert warning["code"] == "slide_too_full"


CAPTION = "A caption that explains at some length what can be seen. "


@pytest.mark.parametrize("caption", [CAPTION, CAPTION * 6, CAPTION * 34])
@pytest.mark.parametrize("lines_before", [1, 5, 10, 20])
def test_an_image_is_on_the_page_of_its_caption(caption: str, lines_before: int) -> None:
    shown = image(drawn(600, 1_200), caption=caption[:2_000], width_percent=100)
    pages = export(*[text("Line")] * lines_before, shown, title="T")["pages"]
    bodies = [page_picture(n, width=595, height=842).crop((0, 75, 595, 765)) for n in (1, pages)]
    assert (204, 34, 0) in [color for _, color in bodies[-1].getcolors(1 << 20) or []]
    if pages > 1:
        before = export(*[text("Line")] * lines_before, title="T")
        assert before["pages"] == 1
        alone = page_picture(1, width=595, height=842).crop((0, 75, 595, 765))
        assert inked(bodies[0]) == inked(alone)


@pytest.mark.parametrize("lines_before", range(33, 40))
def test_the_caption_of_a_table_is_on_the_page_of_its_first_row(lines_before: int) -> None:
    lines = [text("Line of text")] * lines_before
    export(*lines)
    alone = inked(page_picture(1, width=595, height=842).crop((0, 75, 595, 765)))
    export(*lines, table(["a", "b"], [[1, 2]] * 9, caption="What it counts"))
    whole = inked(page_picture(1, width=595, height=842).crop((0, 75, 595, 765)))
    assert alone is not None
    assert whole is not None
    # Caption, header and one row are about 48 points high.
    assert whole[3] == alone[3] or whole[3] - alone[3] > 40


def test_slides_that_fit_are_not_scaled() -> None:
    def upper() -> Image.Image:
        return page_picture(1, width=1280, height=720).crop((0, 0, 1280, 190))

    export(text("# A\n\nb"), view_mode="slide")
    little = upper()
    export(text("# A\n\nb\n\n" + "c\n\n" * 5), view_mode="slide")
    assert inked(little) is not None
    assert ImageChops.difference(little, upper()).getbbox() is None


def test_long_tables_run_over_pages_and_repeat_their_header() -> None:
    result = export(table(["the header", "n"], [["x", n] for n in range(200)]))
    assert result["pages"] > 3
    first, second = page_picture(1, width=595, height=842), page_picture(2, width=595, height=842)
    box = (0, 70, 595, 94)
    assert inked(first.crop(box)) is not None
    assert ImageChops.difference(first.crop(box), second.crop(box)).getbbox() is None


@pytest.mark.parametrize(
    "given",
    [
        text("x" * 5_000),
        text("https://a.b/" + "path/" * 300),
        text(f"`{'y' * 300}`"),
        text(f"# {'z' * 300}"),
        code("v = '" + "w" * 5_000 + "'"),
        table(["a", "b"], [["q" * 2_000, "r" * 2_000]]),
        table([f"number {n}" for n in range(50)], [["abcdefghij klmnop"] * 50] * 3),
        equation("+".join("abcdefgh" * 15)),
        text("$" + "+".join("abcdefgh" * 15) + "$"),
        image(drawn(3_000, 50)),
        image(drawn(50, 3_000), width_percent=100),
    ],
    ids=[
        "word",
        "address",
        "code",
        "heading",
        "lines",
        "cells",
        "columns",
        "formula",
        "math",
        "wide",
        "high",
    ],
)
def test_nothing_leaves_the_page(given: dict[str, Any]) -> None:
    export(given, title="T" * 200)
    box = inked(page_picture(1, width=595, height=842))
    assert box is not None
    assert box[0] >= 65
    assert box[2] <= 595 - 65


@pytest.mark.parametrize("view_mode", ["document", "slide"])
@pytest.mark.parametrize(
    "objects",
    [
        [text("".join("  " * n + "- *a **b ~~c~~***\n" for n in range(25)))],
        [text("> " * 12 + "- " * 12 + "a")],
        [plain("".join(chr(n) for n in range(32, 0x2FFF)))],
        [plain("x" * 100_000)],
        [table(["a"] * 10, [[1] * 10] * 1_000)],
        [code("x = f(1)  # 'a'\n" * 10_000)],
        [text("$" + "$ $".join(map(str, range(300))) + "$")],
        [],
    ],
    ids=["lists", "quotes", "characters", "word", "table", "code", "formulas", "nothing"],
)
def test_hostile_documents_are_exported_in_time(
    objects: list[dict[str, Any]], view_mode: str
) -> None:
    began = time.process_time()
    assert export(*objects, view_mode=view_mode)["pages"] >= 1
    assert time.process_time() - began < 30


def test_long_words_can_be_broken() -> None:
    export(text("x" * 50))
    assert ZERO_WIDTH_SPACE.join("x" * 50) in set_texts()


SAME = """
import io, json, sys
from ade_engine.channel import Channel
from ade_engine.entry import export, thumbnail
document = json.load(open(sys.argv[1]))
made = {"formats": ["pdf", "html"], "view_mode": sys.argv[2], "include_speaker_notes": True}
export.main(made | {"document": document}, Channel(io.StringIO()))
wanted = {"sizes": [{"width": 200, "height": 100}], "background": "white", "page": 1}
thumbnail.main(wanted | {"document": document, "view_mode": sys.argv[2]}, Channel(io.StringIO()))
"""


@pytest.mark.parametrize("view_mode", ["document", "slide"])
def test_the_same_document_always_gives_the_same_bytes(view_mode: str, tmp_path: Path) -> None:
    document = {
        "title": "Same",
        "authors": ["A", "B"],
        "objects": [
            text("# a\n\n*b* $x$ $y$ [c](https://d.e) 漢字 é ✓", notes="n"),
            equation(r"\frac{1}{2}"),
            code("x = 1", {"result_json": {"b": 1, "a": 2}}),
            table(["a"], [[1]]),
            image(drawn(20, 20)),
        ],
    }
    given = tmp_path / "document.json"
    given.write_text(json.dumps(document))
    made: list[dict[str, bytes]] = []
    for seed, zone, epoch in (("1", "UTC", "0"), ("2", "Asia/Tokyo", "1800000000")):
        folder = tmp_path / seed
        folder.mkdir()
        subprocess.run(
            [sys.executable, "-c", SAME, str(given), view_mode],
            cwd=folder,
            env=os.environ | {"PYTHONHASHSEED": seed, "TZ": zone, "SOURCE_DATE_EPOCH": epoch},
            check=True,
        )
        made.append({one.name: one.read_bytes() for one in folder.joinpath("artifacts").iterdir()})
    assert set(made[0]) == {"document.pdf", "document.html", "thumbnail-200x100.png"}
    assert made[0] == made[1]
    assert b"CreationDate" not in made[0]["document.pdf"]


def test_typst_starts_few_threads_on_a_large_machine() -> None:
    source = (
        "import os; os.cpu_count = lambda: 128; import ade_engine.export.pages; "
        "print(os.environ['RAYON_NUM_THREADS'])"
    )
    assert _printed(source) == "4\n"


def test_preloading_starts_no_thread() -> None:
    source = "import os, ade_engine.preload.documents; print(len(os.listdir('/proc/self/task')))"
    assert _printed(source) == "1\n"


def _printed(source: str) -> str:
    """Run a line of Python in a process without variables that set the number of threads."""
    around = {name: value for name, value in os.environ.items() if not name.startswith("RAYON")}
    command = [sys.executable, "-c", source]
    return subprocess.run(command, env=around, capture_output=True, check=True, text=True).stdout

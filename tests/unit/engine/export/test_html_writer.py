"""HTML is one file without external resources, in which no untrusted text is markup."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engine.export.exported import (
    HTML,
    code,
    drawn,
    equation,
    export,
    image,
    plain,
    table,
    text,
)

from ade_engine.export.document_tree import DocumentTree, Item
from ade_engine.export.formula_drawings import FormulaDrawings
from ade_engine.export.html_writer import write_html
from ade_engine.export.markdown import parse

TAGS = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "article",
        "header",
        "section",
        "aside",
        "div",
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "em",
        "strong",
        "s",
        "code",
        "pre",
        "samp",
        "a",
        "br",
        "hr",
        "ul",
        "ol",
        "li",
        "blockquote",
        "figure",
        "figcaption",
        "img",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "svg",
        "defs",
        "g",
        "use",
        "path",
        "rect",
    ]
)
VOID = frozenset({"meta", "br", "hr", "img", "use", "path", "rect"})
ATTRIBUTES = frozenset(
    [
        "lang",
        "dir",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "id",
        "data-object",
        "href",
        "rel",
        "src",
        "alt",
        "width",
        "height",
        "scope",
        "tabindex",
        "start",
        "role",
        "aria-label",
        "aria-hidden",
        "viewbox",
        "d",
        "fill",
        "stroke",
        "stroke-width",
        "transform",
        "x",
        "y",
        "rx",
        "ry",
        "stroke-linecap",
        "stroke-linejoin",
        "fill-rule",
    ]
)
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></title></textarea>--><!--",
    "'\" onmouseover='x'",
    "&lt;b&gt;&#60;script&#62;",
    "]]><svg onload=alert(1)>",
    "{{7*7}}${7*7}",
]


class Looked(HTMLParser):
    """Parse a page; fail on what must not be there."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self.styles: list[str] = []
        self.tags: list[str] = []
        self.found: dict[str, list[dict[str, str | None]]] = {}
        self.feed(page)
        self.close()
        assert self.tags == [], f"never closed: {self.tags}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        for name, value in attrs:
            assert name in ATTRIBUTES, (tag, name)
            if name == "href":
                assert value is not None
                assert re.match(r"https?://|mailto:|#f\d+$", value), value
            if name == "src":
                assert value is not None
                assert value.startswith("data:image/"), value
        self.found.setdefault(tag, []).append(dict(attrs))
        if tag not in VOID:
            self.tags.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.tags.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.tags, f"</{tag}> closes nothing"
        assert self.tags.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.styles if self.tags and self.tags[-1] == "style" else self.texts).append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def looked() -> Looked:
    """Parse the last export."""
    return Looked(HTML.read_text(encoding="utf-8"))


@pytest.mark.parametrize("view_mode", ["document", "slide"])
@pytest.mark.parametrize("evil", HOSTILE)
def test_text_is_escaped_everywhere(evil: str, view_mode: str) -> None:
    export(
        plain(evil, object_id=evil, notes=evil),
        text(f"# {evil}\n\n`{evil}` [a](https://a.b/{evil})\n\n```{evil}\n{evil}\n```"),
        code(evil, {"stdout": evil, "stderr": evil, "result_json": evil, "error": evil}),
        table([evil], [[evil]], caption=evil),
        image(drawn(2, 2), alt=evil, caption=evil),
        formats=("html",),
        view_mode=view_mode,
        notes=True,
        title=evil,
        authors=[evil],
    )
    page = looked()
    assert page.text.count(evil) >= 10
    assert page.found["img"][0]["alt"] == evil


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200), st.sampled_from(["document", "slide"]))
def test_no_text_of_markdown_breaks_the_page(value: str, view_mode: str) -> None:
    blocks = parse(value, lambda code, message: None)
    document = DocumentTree(value, (value,), "en", (Item(value, "text", blocks, blocks),))
    Looked(write_html(document, FormulaDrawings({}), view_mode=view_mode, notes=True))


@pytest.mark.parametrize("view_mode", ["document", "slide"])
def test_the_policy_forbids_all_but_the_style_and_images(view_mode: str) -> None:
    export(
        text("$x$ and $y$"),
        image(drawn(2, 2), width_percent=40),
        formats=("html",),
        view_mode=view_mode,
    )
    page = looked()
    [style] = page.styles
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = next(meta for meta in page.found["meta"] if meta.get("http-equiv"))
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert policy["content"] == (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in style
    assert "@import" not in style
    [sized] = page.found["img"]
    assert f".{sized['class']}{{width:40%}}" in style


def test_a_formula_is_drawn_once_and_has_its_source_as_label() -> None:
    export(text(r"$\sum_i x$ and $\sum_i x$ again"), equation(r"\sum_i x"), formats=("html",))
    page = looked()
    assert [use["href"] for use in page.found["use"]] == ["#f0", "#f0", "#f1"]
    assert [one["id"] for one in page.found["g"] if "id" in one] == ["f0", "f1"]
    labels = [one.get("aria-label") for one in page.found["svg"]]
    assert labels == [None, *[r"\sum_i x"] * 3]


def test_a_formula_that_cannot_be_drawn_shows_its_source_and_warns() -> None:
    result = export(
        text(r"$\frac{$", object_id="o"), equation(r"\nosuchthing<b>"), formats=("pdf", "html")
    )
    assert [(one["code"], one["object_id"]) for one in result["warnings"]] == [
        ("formula_not_drawn", "o"),
        ("formula_not_drawn", "number 2"),
    ]
    assert r"\frac{" in looked().text
    assert r"\nosuchthing<b>" in looked().text


def test_elements_have_their_meaning() -> None:
    export(
        text("# A\n\n1. x\n\n> q", notes="n"),
        code("c", {"stdout": "o"}),
        table(["a", "b"], [["x", 1]], caption="cap"),
        image(drawn(2, 2), alt="what", caption="fig"),
        formats=("html",),
        notes=True,
        title="Title",
        authors=["Ada", "Emil"],
        language="de-AT",
    )
    page = looked()
    assert page.found["html"] == [{"lang": "de-AT", "dir": "ltr"}]
    assert len(page.found["h1"]) == 1
    assert len(page.found["h2"]) == 1
    assert page.found["th"] == [
        {"scope": "col", "class": "left"},
        {"scope": "col", "class": "right"},
    ]
    assert [cell["class"] for cell in page.found["td"]] == ["left", "right"]
    assert {"aside", "figure", "figcaption", "caption", "samp", "ol", "blockquote"} <= set(
        page.found
    )
    assert page.found["img"][0]["alt"] == "what"
    assert "Ada, Emil" in page.text


def test_arabic_runs_from_the_right() -> None:
    export(plain("مرحبا"), formats=("html",), language="ar")
    assert looked().found["html"] == [{"lang": "ar", "dir": "rtl"}]


def test_slides_are_sections_and_notes_are_asides_on_request() -> None:
    objects = [text("# A\n\nb", notes="secret"), text("# C")]
    for notes in (False, True):
        export(*objects, formats=("html",), view_mode="slide", title="T", notes=notes)
        page = looked()
        assert [one["class"] for one in page.found["section"]] == [
            "slide cover",
            "slide",
            "slide cover",
        ]
        assert ("secret" in page.text) is notes
        assert ("aside" in page.found) is notes

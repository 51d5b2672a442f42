"""HTML of unknown origin runs nothing and loads nothing."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade_engine.cell_outputs.clean_html import ATTRIBUTES, ELEMENTS, clean_html

PIECES = st.sampled_from(
    ["<b>", "</b>", "<script>", "</script>", "<style>", "</style>", "<svg onload=x()>", "</svg>",
     "<img src=x onerror=x()>", "<a href='javascript:x()'>", "</a>", "<iframe src=y>", "<!--",
     "-->", "<p style='background:url(x)'>", "x()", "&lt;script&gt;", "<", ">", '"', "<math>",
     "<td colspan=2>", "</table>", "<style>@import 'x'", "\0", "</style><script>"]
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "cleaned"),
    [
        ("<b onclick=x()>hi</b>", "<b>hi</b>"),
        ("a<script>x()</script>b", "ab"),
        ("<a href='https://a.example/'>a</a>", '<a href="https://a.example/">a</a>'),
        ("<a href=' JaVaScRiPt:x()'>a</a>", "<a>a</a>"),
        ("<img src='http://a.example/p.png'>", "<img>"),
        ("<td colspan=2>1 < 2</td>", '<td colspan="2">1 &lt; 2</td>'),
        ("<style>#a {color: red}</style>", "<style>#a {color: red}</style>"),
        ("<style>#a {background: u\\72l(x)}</style>", ""),
        ("<p style='color: red'>a", '<p style="color: red">a</p>'),
        ("<p style='background: url(x)'>a</p>", "<p>a</p>"),
        ("<unknown>a</unknown>", "a"),
    ],
)
def test_what_is_kept(given: str, cleaned: str) -> None:
    assert clean_html(given) == cleaned


class Reader(HTMLParser):
    """Note the elements and attributes of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[tuple[str, str | None]]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one."""
        self.found.append((tag, attrs))


@given(st.lists(PIECES, max_size=12).map("".join))
def test_only_known_elements_and_attributes_are_left(text: str) -> None:
    cleaned = clean_html(text)
    reader = Reader()
    reader.feed(cleaned)
    reader.close()
    for tag, attrs in reader.found:
        assert tag in ELEMENTS
        assert {name for name, _ in attrs} <= ATTRIBUTES
        assert all("javascript:" not in (value or "").lower() for _, value in attrs)
    assert clean_html(cleaned) == cleaned

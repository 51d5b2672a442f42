"""A safe copy contains nothing that could harm a page, whatever the drawing contained."""

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade_engine.render import BadPicture
from ade_engine.render.safe_svg import (
    ATTRIBUTES,
    ELEMENTS,
    ELEMENTS_MAX,
    SIZE_MAX,
    SVG,
    TITLE_CHARS_MAX,
    parse_svg,
    safe_copy,
)

XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
HARMLESS = {f"{{{SVG}}}{name}" for name in (*ELEMENTS, "title")}
KNOWN = {*ATTRIBUTES, "id", "role", "aria-label"}
REFERENCE = re.compile(r"url\(|:|//|&|expression|script|import|@", re.IGNORECASE)


def copied(svg: str, title: str = "a picture") -> str:
    return safe_copy(parse_svg(svg), title=title, width=10, height=10, view_box="0 0 10 10")


def drawing(inner: str) -> str:
    return f'<svg xmlns="{SVG}" {XLINK} viewBox="0 0 10 10">{inner}</svg>'


def inside(svg: str) -> str:
    """Return the drawing without its title."""
    return copied(svg).partition("</title>")[2].removesuffix("</svg>")


# --- what is left out -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "inner",
    [
        "<script>alert(1)</script>",
        '<script href="https://example.org/x.js"/>',
        "<foreignObject><body xmlns='http://www.w3.org/1999/xhtml'>x</body></foreignObject>",
        "<style>* { fill: url(https://example.org/x) }</style>",
        '<image href="https://example.org/x.png"/>',
        '<image xlink:href="file:///etc/passwd"/>',
        '<use href="https://example.org/x.svg#a"/>',
        '<use xlink:href="#a"/>',
        '<animate attributeName="href" to="javascript:alert(1)"/>',
        '<set attributeName="onload" to="alert(1)"/>',
        '<iframe src="https://example.org"/>',
        '<html xmlns="http://www.w3.org/1999/xhtml"><g><rect/></g></html>',
        '<x:script xmlns:x="http://www.w3.org/2000/svg">alert(1)</x:script>',
        "<g><g><script>1</script></g></g>",
        "<!-- <script>alert(1)</script> -->",
        "<?xml-stylesheet href='https://example.org/x.css'?>",
        "words that stand nowhere",
        "<svg onload='alert(1)'><rect/></svg>",
    ],
)
def test_harmful_elements_are_removed_with_their_content(inner: str) -> None:
    assert inside(drawing(inner)) == ""


@pytest.mark.parametrize(
    "attribute",
    [
        'onload="alert(1)"',
        'onclick="alert(1)"',
        'href="javascript:alert(1)"',
        'xlink:href="#a"',
        'id="a"',
        'class="a"',
        'style="background: url(https://example.org/x)"',
        'style="fill: url(https://example.org/x)"',
        'fill="url(https://example.org/x#a)"',
        'fill="url( #a )"',
        'fill="red;x"',
        'filter="url(#a)"',
        'mask="url(#a)"',
        'transform="translate(1) url(#a)"',
        'd="M 0 0 L &#60;"',
        'font-family="a&quot; onload=&quot;alert(1)"',
        'xml:base="https://example.org"',
        'data-x="1"',
        'tabindex="0"',
    ],
)
def test_harmful_attributes_are_removed(attribute: str) -> None:
    assert inside(drawing(f"<path {attribute}/>")) == "<path />"


def test_a_link_is_removed_and_its_content_is_kept() -> None:
    linked = '<a xlink:href="javascript:alert(1)"><text>b</text></a>'
    assert inside(drawing(linked)) == "<text>b</text>"


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE svg [<!ENTITY a "x">]>',
        '<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
        "<!DOCTYPE svg [<!ATTLIST path onload CDATA 'alert(1)'>]>",
        "<!DOCTYPE svg []>",
    ],
)
def test_a_document_type_that_declares_anything_is_rejected(doctype: str) -> None:
    with pytest.raises(BadPicture, match="declares"):
        parse_svg(doctype + drawing("<text>&a;</text>"))


def test_the_document_type_of_graphviz_is_removed() -> None:
    doctype = '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/svg11.dtd">'
    assert copied(doctype + drawing("<rect/>")) == copied(drawing("<rect/>"))


@pytest.mark.parametrize("svg", ["", "words", "<svg", "<svg></g>", drawing("<text>&b;</text>")])
def test_invalid_svg_is_rejected(svg: str) -> None:
    with pytest.raises(BadPicture, match="not valid SVG"):
        parse_svg(svg)


def test_too_many_and_too_deep_elements_are_rejected() -> None:
    with pytest.raises(BadPicture, match="too many"):
        parse_svg(drawing("<g/>" * ELEMENTS_MAX))
    with pytest.raises(BadPicture, match="too deeply"):
        parse_svg(drawing("<g>" * 200 + "</g>" * 200))


# --- what is kept ---------------------------------------------------------------------------------


def test_shapes_are_kept_unchanged() -> None:
    kept = (
        '<g transform="translate(4 97) scale(1 1)"><path d="M1,-2C3e1,4.5 6,7 8,9Z" fill="none" '
        'stroke="#00ff00" stroke-dasharray="5,2" /><polygon points="1,2 3,4" fill="currentColor" />'
        '<text x="1" font-family="Times,serif" font-size="14.00">a <tspan dy="1em">b</tspan> c'
        "</text></g>"
    )
    assert inside(drawing(kept)) == kept


def test_declarations_of_a_style_become_attributes() -> None:
    styled = '<stop offset="0" style="stop-color:lightblue;stop-opacity:1.;behavior:url(x)"/>'
    assert inside(drawing(styled)) == (
        '<stop offset="0" stop-color="lightblue" stop-opacity="1." />'
    )


def test_gradients_get_ids_that_no_other_drawing_has() -> None:
    svg = drawing('<defs><linearGradient id="l_0"/></defs><rect fill="url(#l_0)"/>')
    one, other = copied(svg, "one"), copied(svg, "other")
    names = [re.findall(r'id="([^"]+)"', picture) for picture in (one, other)]
    assert [len(found) for found in names] == [1, 1]
    assert names[0] != names[1]
    assert f'fill="url(#{names[0][0]})"' in one


def test_a_reference_to_a_missing_gradient_becomes_none() -> None:
    assert inside(drawing('<rect fill="url(#secret)"/>')) == '<rect fill="none" />'


def test_a_drawing_has_a_bounded_title() -> None:
    root = ElementTree.fromstring(copied(drawing(""), "<b> & \x00 \ud800" + "x" * 5_000))
    said = root.get("aria-label") or ""
    assert said.startswith("<b> & \ufffd \ufffdxxx")
    assert len(said) == TITLE_CHARS_MAX
    assert root[0].text == said
    assert root.get("width") == root.get("height") == "10"


@pytest.mark.parametrize("size", [0, -1, float("nan"), float("inf"), SIZE_MAX + 1])
def test_an_invalid_size_is_rejected(size: float) -> None:
    with pytest.raises(BadPicture, match="pixels"):
        safe_copy(Element("svg"), title="", width=size, height=10, view_box="0 0 1 1")


# --- whatever comes -------------------------------------------------------------------------------

NAMES = st.sampled_from(
    [*sorted(ELEMENTS), "a", "script", "style", "image", "use", "foreignObject", "animate", "title"]
)
KEYS = st.sampled_from(
    [
        *sorted(ATTRIBUTES),
        "id",
        "style",
        "class",
        "href",
        "xlink:href",
        "onload",
        "onclick",
        "xml:base",
    ]
)
WORDS = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"), max_size=30
)
HOSTILE = st.sampled_from(
    [
        "javascript:alert(1)",
        "url(https://example.org/x)",
        "url(#a)",
        "#a",
        "fill:url(//example.org);stroke:red",
        "red",
        "12pt",
        "M 0 0",
        "&amp;lt;script",
        '"><script>alert(1)</script>',
    ]
)
ELEMENT = st.recursive(
    WORDS.map(escape),
    lambda inner: st.builds(
        lambda name, attributes, children: (
            f"<{name} {' '.join(f'{key}={quoteattr(value)}' for key, value in attributes.items())}>"
            f"{''.join(children)}</{name}>"
        ),
        NAMES,
        st.dictionaries(KEYS, HOSTILE | WORDS, max_size=4),
        st.lists(inner, max_size=4),
    ),
    max_leaves=12,
)


@given(inner=ELEMENT, title=st.text(max_size=40))
def test_only_harmless_content_remains_of_any_input(inner: str, title: str) -> None:
    svg = copied(drawing(inner), title)
    assert svg == copied(drawing(inner), title)
    root = ElementTree.fromstring(svg)
    gradients = {one.get("id") for one in root.iter() if "id" in one.attrib}
    for element in root.iter():
        assert element.tag in HARMLESS
        assert element.attrib.keys() <= KNOWN
        for key, value in element.attrib.items():
            if key == "aria-label":
                continue
            if value.startswith("url("):
                assert value[5:-1] in gradients
            else:
                assert not REFERENCE.search(value)
    assert safe_copy(parse_svg(svg), title=title, width=10, height=10, view_box="0 0 10 10") == svg

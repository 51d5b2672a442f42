"""Diagrams that name files are rejected in any notation; what only looks like it is allowed."""

import pytest

from ade_engine.render import BadDiagram
from ade_engine.render.dot import CHARS_MAX, check, with_defaults


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("digraph { a [image=x] }", 1),
        ('digraph {\n a [label=b,\n image = "/etc/passwd"] }', 3),
        ('digraph { "image"="x" }', 1),
        ('digraph { a ["ima" + "ge"="x"] }', 1),
        ('digraph { a ["ima\\\nge"="x"] }', 1),
        ("digraph { /* = */ shapefile /* x */ = /* y */ z }", 1),
        ("digraph {\n# image\n// image\nimagepath=x }", 4),
        ("digraph { fontpath=x }", 1),
        ("digraph { stylesheet=x }", 1),
        ("digraph { _background=x }", 1),
        ('digraph { a [label=<<TABLE><TR><TD><IMG SRC="x"/></TD></TR></TABLE>>] }', 1),
        ("digraph {\n a [label=<< img src='x'>>] }", 2),
        ("digraph { a [label=<b<!-- < -->>, image=x] }", 1),
    ],
)
def test_attributes_that_read_files_are_rejected(source: str, line: int) -> None:
    with pytest.raises(BadDiagram, match="reads a file") as caught:
        check(source)
    assert caught.value.details() == {"line": line}


@pytest.mark.parametrize(
    "source",
    [
        'digraph { a [fontname="x\\" y=\\"1"] }',
        'digraph { a ["font" + "name"="x" + "<y>"] }',
        'digraph { a [fontname=<x" y="1>] }',
        'digraph { fontname="a&b" }',
        'digraph { a -> b [labelfontname="<", headlabel=c] }',
        'digraph { a [URL="x\\" y=\\"1"] }',
        'digraph { a -> b [headhref="<a>"] }',
        "digraph { a [label=<<FONT FACE='x\" y=\"1'>q</FONT>>] }",
        'digraph { a [label=<<FONT face = "x&quot; y=&#34;1">q</FONT>>] }',
        'digraph { a [label=<<TABLE HREF="&#x22;"><TR><TD>q</TD></TR></TABLE>>] }',
    ],
)
def test_values_that_graphviz_does_not_escape_cannot_contain_markup(source: str) -> None:
    with pytest.raises(BadDiagram, match="cannot contain") as caught:
        check(source)
    assert caught.value.details() == {"line": 1}


@pytest.mark.parametrize(
    "source",
    [
        'digraph { a [fontname="DejaVu Sans, Times-Roman"] }',
        'digraph { a [URL="https://example.org/?a=1&b=2", label="<\\"&"] }',
        'digraph { a [label=<<FONT FACE="Times" COLOR="red">&lt;&quot;</FONT>>] }',
        'digraph { a [tooltip="<b>"] "fontname" -> "<x>" }',
    ],
)
def test_markup_characters_are_allowed_elsewhere(source: str) -> None:
    check(source)


@pytest.mark.parametrize(
    "source",
    [
        "digraph { image -> shapefile }",
        'digraph { a [label="image=x"] }',
        'digraph { a [label="\\" image=x"] }',
        "digraph { /* image=x */ a }",
        "digraph { a // image=x\n }",
        "digraph {\n#image=x\n a }",
        "digraph { a [label=<image=x>] }",
        "digraph { imagescale=true; a [myimage=x] }",
        "",
        "digraph { a [label=<b<!-- > --> image=x>] }",
    ],
)
def test_what_only_looks_like_a_file_attribute_is_allowed(source: str) -> None:
    check(source)


def test_the_length_of_a_diagram_is_limited() -> None:
    check("#" * CHARS_MAX)
    with pytest.raises(BadDiagram, match="at most 200,000 are allowed"):
        check("#" * (CHARS_MAX + 1))
    with pytest.raises(BadDiagram, match="contains a NUL character"):
        check("digraph { \x00 }")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("digraph { a }", "digraph {+ a }"),
        ('/* { */ strict graph "{" {\n{ a } }', '/* { */ strict graph "{" {+\n{ a } }'),
        ("words", "words"),
    ],
)
def test_defaults_are_inserted_at_the_start_of_the_graph(source: str, expected: str) -> None:
    assert with_defaults(source, "+") == expected

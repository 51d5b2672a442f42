"""Diagrams are drawn by `dot` within limits; without it, the error says what to install."""

import shutil
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from ade_engine.render import (
    BadDiagram,
    BadPicture,
    GraphvizNotFound,
    diagram,
    diagram_svg,
    to_png,
)
from ade_engine.render.raster import png_size

drawing = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
SVG = "{http://www.w3.org/2000/svg}"


def drawn(source: str, **how: str) -> Element:
    return ElementTree.fromstring(diagram_svg(source, **how).svg)  # type: ignore[arg-type]


def inks(source: str, tag: str, **how: str) -> set[str | None]:
    """Return the fills of texts, or the strokes of shapes."""
    name = "fill" if tag == "text" else "stroke"
    return {one.get(name) for one in drawn(source, **how).iter(f"{SVG}{tag}")}


@drawing
def test_a_diagram_is_drawn_with_its_labels() -> None:
    picture = diagram_svg('digraph { a [label="Größe <1>"]; a -> b }')
    root = ElementTree.fromstring(picture.svg)
    assert [text.text for text in root.iter(f"{SVG}text")] == ["Größe <1>", "b"]
    assert root.get("aria-label") == 'digraph { a [label="Größe <1>"]; a -> b }'
    assert picture.drawn_by.startswith("graphviz ")
    assert [picture.width, picture.height] == [float(root.get(s, "")) for s in ("width", "height")]
    assert png_size(to_png(picture.svg, scale=1))[1] == pytest.approx(picture.height, abs=1)


@drawing
def test_the_same_diagram_gives_the_same_bytes() -> None:
    source = "graph { layout=neato; a -- b -- c -- a; c -- d }"
    assert diagram_svg(source) == diagram_svg(source)


@drawing
def test_black_becomes_the_ink_and_the_background_is_transparent() -> None:
    source = "digraph { a -> b [label=c] }"
    assert inks(source, "text") == inks(source, "path") == {"currentColor"}
    assert inks(source, "text", color="#f00") == {"#ff0000"}
    assert "white" not in diagram_svg(source).svg


@drawing
def test_text_on_a_filled_shape_keeps_its_colour() -> None:
    filled = "digraph { node [style=filled, fillcolor=white]; a -> b [label=c] }"
    assert inks(filled, "text") == {"black", "currentColor"}
    ground = "digraph { bgcolor=white; a -> b }"
    assert inks(ground, "text") == inks(ground, "path") == {"black"}
    cluster = "digraph { subgraph cluster_x { style=filled; color=yellow; a } b }"
    assert inks(cluster, "text") == {"black"}
    red = "digraph { a [color=red, fontcolor=blue] }"
    assert inks(red, "text") == {"blue"}


@drawing
def test_text_has_the_requested_size() -> None:
    sizes = {
        text.get("font-size")
        for text in ElementTree.fromstring(
            diagram_svg("digraph { a -> b; c [fontsize=9] }", size=40).svg
        ).iter(f"{SVG}text")
    }
    assert sizes == {"30.00", "9.00"}


@drawing
def test_a_diagram_overrides_the_defaults() -> None:
    source = 'digraph { node [fontname="Courier"]; fontname="Times"; label=x; a }'
    families = {text.get("font-family") for text in drawn(source).iter(f"{SVG}text")}
    assert families == {"Courier,monospace", "Times,serif"}
    plain = {text.get("font-family") for text in drawn("digraph { a }").iter(f"{SVG}text")}
    assert plain == {"DejaVu Sans,sans-serif"}


@drawing
def test_links_scripts_and_ids_are_removed() -> None:
    svg = diagram_svg(
        'digraph { a [URL="javascript:alert(1)", tooltip=x, id=evil, class=evil]; '
        'b [label=<<TABLE HREF="//example.org"><TR><TD>y</TD></TR></TABLE>>] }'
    ).svg.partition("</title>")[2]
    for word in ("javascript", "href", "evil", "example", "class=", "id="):
        assert word not in svg


@drawing
@pytest.mark.parametrize(
    ("source", "said", "place"),
    [
        ("digraph {\n a -> \n}", "syntax error near '}'", {"line": 3}),
        ("graph { a -> b }", "syntax error near '->'", {"line": 1}),
        ('digraph {\n a [label="x]\n}', "syntax error", {"line": 2}),
        ("words", "syntax error near 'words'", {"line": 1}),
        ("", "must be one graph", {}),
        ("digraph { a } digraph { b }", "must be one graph", {}),
        ("digraph { a [image=x] }", "reads a file", {"line": 1}),
    ],
)
def test_an_invalid_diagram_is_rejected_with_the_message_of_graphviz(
    source: str, said: str, place: dict[str, int]
) -> None:
    with pytest.raises(BadDiagram) as caught:
        diagram_svg(source)
    assert said in str(caught.value)
    assert caught.value.details() == place


@drawing
def test_a_diagram_that_is_too_large_is_rejected() -> None:
    with pytest.raises(BadPicture, match="at most 30000"):
        diagram_svg('digraph { size="9999,9999!"; a -> b }')


def test_without_graphviz_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GraphvizNotFound, match="apt-get install graphviz") as caught:
        diagram_svg("digraph { a }")
    assert (caught.value.category, caught.value.code) == ("DEPENDENCY_ERROR", "GRAPHVIZ_NOT_FOUND")


def program(folder: Path, script: str) -> None:
    path = folder / "dot"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exec cat /dev/zero", "The drawing is larger than"),
        ("exec tail -f /dev/null", "takes longer than 0.3 seconds"),
        ("exec tail -f /dev/null > /dev/null", "takes longer than 0.3 seconds"),
        ("echo 'Error: no room' >&2; exit 3", "Graphviz rejected the diagram: no room"),
        ("exit 1", "it gave no reason"),
        ("cat /dev/zero | head -c 9000000 >&2; exit 1", "Graphviz rejected the diagram"),
        ("exit 0", "must be one graph"),
    ],
)
def test_a_program_that_misbehaves_is_killed(
    script: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program(tmp_path, script)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(diagram, "TIMEOUT_SECONDS", 0.3)
    with pytest.raises(BadDiagram) as caught:
        diagram_svg("digraph { a }")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 1_000


def test_the_program_is_started_in_safe_mode_with_few_variables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program(tmp_path, f'env > {tmp_path}/seen; echo "$@" > {tmp_path}/asked')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("SECRET", "x")
    with pytest.raises(BadDiagram):
        diagram_svg("digraph { a }")
    seen = dict(line.split("=", 1) for line in (tmp_path / "seen").read_text().splitlines())
    assert seen["SERVER_NAME"] == "ade"
    assert seen["GV_FILE_PATH"] == "/nonexistent"
    assert "SECRET" not in seen
    assert (tmp_path / "asked").read_text() == "-Tsvg\n"

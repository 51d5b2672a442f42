"""Formulas are drawn as TeX draws them: all of the list, with its spaces, in any colour."""

import contextlib
import re
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ade_engine.render import BadFormula, BadPicture, RenderError, formula_svg
from ade_engine.render.mathml import mathml

FORMULAS = tomllib.loads((Path(__file__).parents[3] / "formulas.toml").read_text())["formula"]
MOVE = re.compile(r"translate\((\S+) (\S+)\)")
SCALE = re.compile(r"scale\((\S+)\)")
POINT = re.compile(r"(-?[\d.]+)[ ,]-?[\d.]+")


def tree(latex: str, *, display: bool = True) -> ElementTree.Element:
    return mathml(latex, display=display)


def letters(latex: str, **how: Any) -> list[ElementTree.Element]:
    """Return the elements of the glyphs in drawing order."""
    root = ElementTree.fromstring(formula_svg(latex, **how).svg)
    return [one for one in root.iter() if one.tag.endswith("}path")]


def places(latex: str, **how: Any) -> list[tuple[float, float]]:
    """Return the positions of the glyphs in a size of 24."""
    found = [MOVE.match(one.get("transform", "")) for one in letters(latex, **how)]
    return [(float(one[1]), float(one[2])) for one in found if one]


def gaps(latex: str) -> list[float]:
    return [after - before for (before, _), (after, _) in pairwise(places(latex))]


@pytest.mark.parametrize("formula", FORMULAS, ids=[one["name"] for one in FORMULAS])
def test_every_formula_of_the_list_is_drawn(formula: dict[str, Any]) -> None:
    for display in (True, False):
        picture = formula_svg(formula["latex"], display=display)
        assert picture.svg.count("<path") >= len(re.findall(r"[a-z]", "".join(_texts(formula))))
        assert 0 < picture.baseline < picture.height
        assert formula_svg(formula["latex"], display=display) == picture


def _texts(formula: dict[str, Any]) -> list[str]:
    return [one.text or "" for one in tree(formula["latex"]).iter("mtext")]


def test_the_list_has_more_than_a_hundred_formulas() -> None:
    assert len(FORMULAS) == 110
    assert len({one["name"] for one in FORMULAS}) == 110


# --- cases, scripts, arrows, bold signs -----------------------------------------------------------


def boxes(latex: str) -> list[tuple[float, float]]:
    """Return where glyphs begin and end from left to right, in drawing order, in a size of 24."""
    found = []
    for one in letters(latex):
        at, scale = MOVE.match(one.get("transform", "")), SCALE.search(one.get("transform", ""))
        assert at is not None
        assert scale is not None
        xs = [float(x) for x in POINT.findall(one.get("d", ""))]
        found.append(
            (float(at[1]) + min(xs) * float(scale[1]), float(at[1]) + max(xs) * float(scale[1]))
        )
    return found


def test_the_conditions_of_starred_cases_are_texts() -> None:
    found = tree(r"\begin{cases*} x & if $x > 0$ \\ 0 & otherwise \end{cases*}")
    assert [one.text for one in found.iter("mtext")] == ["if\u00a0", "otherwise"]
    with pytest.raises(BadFormula, match="has two columns"):
        tree(r"\begin{cases*} x & a & b \end{cases*}")


def test_cases_are_in_text_style_and_dcases_in_display_style() -> None:
    rows = r"\sum_{i=1}^n i & x \\ \frac{1}{2} & y"
    small = formula_svg(rf"\begin{{cases}} {rows} \end{{cases}}")
    large = formula_svg(rf"\begin{{dcases}} {rows} \end{{dcases}}")
    assert large.height > 1.4 * small.height
    assert tree(rf"\begin{{cases}} {rows} \end{{cases}}").find(".//munderover") is None
    assert tree(rf"\begin{{dcases}} {rows} \end{{dcases}}").find(".//munderover") is not None
    assert tree(r"\begin{matrix} \sum\limits_{i}^n \end{matrix}").find(".//munderover") is not None


def test_scripts_before_an_atom_end_at_the_same_place() -> None:
    lower, first, second, atom = boxes(r"\prescript{14}{6}{C}")
    assert lower[1] == pytest.approx(second[1], abs=0.8)
    assert first[1] < second[0]
    assert second[1] < atom[0]


@pytest.mark.parametrize("command", [r"\xrightleftharpoons", r"\xleftrightharpoons"])
def test_harpoons_are_as_long_as_their_labels(command: str) -> None:
    label = "abcdefghijklm"
    [(left, _), *_, (_, right)] = boxes(label)
    widths = sorted(end - start for start, end in boxes(f"{command}{{{label}}}"))
    assert widths[-2] == pytest.approx(widths[-1], rel=0.02)
    assert widths[-1] >= 0.6 * (right - left)


@pytest.mark.parametrize("sign", [r"\int", r"\iint", r"\iiint", r"\oint"])
def test_limits_of_integrals_are_under_and_over_the_sign(sign: str) -> None:
    integral, over, under = boxes(rf"{sign}\limits_{{a}}^{{b}}")
    for limit in (over, under):
        assert integral[0] <= sum(limit) / 2 <= integral[1]
    assert sum(under) < sum(over)


def test_a_sign_without_a_bold_form_has_thicker_lines() -> None:
    def strokes(latex: str) -> list[bool]:
        return [one.get("stroke") is not None for one in letters(latex)]

    assert strokes(r"\boldsymbol{\ell + x}") == [True, True, False]
    assert strokes(r"\mathbf{\ell + x}") == [True, False, False]
    assert strokes(r"\ell + x") == [False, False, False]


# --- colours, sizes, what is said -----------------------------------------------------------------


def test_glyphs_have_the_current_colour_or_the_requested_one() -> None:
    inks = {one.get("fill") for one in letters(r"\frac{a}{\overline{b}}")}
    assert inks == {"currentColor"}
    root = ElementTree.fromstring(formula_svg(r"\frac{a}{\overline{b}}", color="#0a0").svg)
    assert {one.get("fill") for one in root.iter() if "fill" in one.attrib} == {"#00aa00"}


def test_a_part_can_have_its_own_colour() -> None:
    drawn = ElementTree.fromstring(formula_svg(r"a \textcolor{red}{\overline{b}\text{ c}} d").svg)
    inks = [one.get("fill") for one in drawn.iter() if "fill" in one.attrib]
    assert inks == ["currentColor", "#ff0000", "#ff0000", "#ff0000", "currentColor"]


def test_the_size_scales_everything_alike() -> None:
    small, large = formula_svg("x^{y^z}", size=10), formula_svg("x^{y^z}", size=40)
    assert large.width == pytest.approx(4 * small.width, abs=0.01)
    assert large.baseline == pytest.approx(4 * small.baseline, abs=0.01)
    drawn = [picture.svg.partition("viewBox")[2] for picture in (small, large)]
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("size", [3.9, 201, float("nan")])
def test_a_size_beyond_the_limits_is_rejected(size: float) -> None:
    with pytest.raises(BadFormula, match="The size is"):
        formula_svg("x", size=size)


@pytest.mark.parametrize("color", ["red; x", "url(#a)", "#12", "javascript"])
def test_an_unknown_colour_is_rejected(color: str) -> None:
    with pytest.raises(BadPicture, match="The colour"):
        formula_svg("x", color=color)


def test_the_source_is_the_title_of_the_drawing() -> None:
    root = ElementTree.fromstring(formula_svg(r"a < b \& \text{c}").svg)
    assert root.get("aria-label") == r"a < b \& \text{c}"
    assert root[0].text == r"a < b \& \text{c}"
    assert root.get("role") == "img"


def test_the_baseline_is_where_letters_stand() -> None:
    picture = formula_svg("x", size=24)
    bottom = sum(float(part) for part in _view_box(picture.svg)[1::2])
    assert bottom == pytest.approx(picture.baseline, abs=0.002)
    assert formula_svg("y").baseline > formula_svg("x").baseline


def _view_box(svg: str) -> list[str]:
    return (ElementTree.fromstring(svg).get("viewBox") or "").split()


# --- what stands where ----------------------------------------------------------------------------


def test_a_minus_that_belongs_to_its_number_has_no_space_after_it() -> None:
    binary, unary = gaps("a-b")[1], gaps("=-b")[1]
    assert unary < binary - 3
    assert gaps("(-b)")[1] == pytest.approx(unary, abs=0.01)


def test_relations_have_more_space_than_signs_and_letters_none() -> None:
    plain = gaps("ab")[0]
    assert plain < gaps("a+b")[0] < gaps("a=b")[0]
    assert gaps(r"a \leqslant b")[0] == pytest.approx(gaps(r"a = b")[0], abs=1.0)
    assert gaps("{a}{=}{b}")[0] == pytest.approx(plain, abs=0.01)


def test_scripts_have_fewer_spaces() -> None:
    spaced = [one.get("width") for one in tree("x^{a=b}").iter("mspace")]
    assert spaced == []
    assert [one.get("width") for one in tree("a=b").iter("mspace")] == ["0.2083em", "0.2083em"]


@pytest.mark.parametrize("display", [True, False])
def test_limits_are_below_in_display_and_beside_in_a_text(display: bool) -> None:
    for latex in (r"\lim_x y", r"\operatorname*{arg\,max}_x y"):
        word = len(places(latex, display=display)) - 2
        (last, _), (limit, low) = places(latex, display=display)[word - 1 : word + 1]
        assert low > 0
        assert (limit < last) == display


def test_fences_are_as_high_as_their_content() -> None:
    flat, high = formula_svg(r"\left(x\right)"), formula_svg(r"\left(\frac{x}{y}\right)")
    assert high.height > 2 * flat.height
    assert formula_svg(r"(\frac{x}{y})").height < high.height


@pytest.mark.parametrize("sign", [r"\lVert", r"\|", "|", r"\langle", r"\lfloor", "(", r"\uparrow"])
def test_fences_grow_only_with_left_and_right(sign: str) -> None:
    plain = formula_svg(r"\frac{x^2}{y_i}")
    assert formula_svg(rf"{sign} \frac{{x^2}}{{y_i}}").height == plain.height


@pytest.mark.parametrize("sign", ["^{-1}", "_2", "'", r"^\top_{n}"])
@pytest.mark.parametrize("kind", ["matrix", "pmatrix", "vmatrix"])
def test_a_matrix_has_exponents_and_indices(kind: str, sign: str) -> None:
    matrix = rf"A \begin{{{kind}}} a & b \\ c & d \end{{{kind}}}"
    with_sign = formula_svg(f"{matrix}{sign} x")
    assert with_sign.svg.count("<path") > formula_svg(f"{matrix} x").svg.count("<path")
    assert with_sign.width > formula_svg(f"{matrix} x").width


@pytest.mark.parametrize("kind", ["pmatrix", "bmatrix", "Bmatrix", "vmatrix", "Vmatrix"])
def test_matrices_are_within_fences_of_their_height(kind: str) -> None:
    def height(name: str) -> float:
        return formula_svg(rf"\begin{{{name}}} a \\ b \\ c \end{{{name}}}").height

    assert 0.9 * height("matrix") < height(kind) < 1.3 * height("matrix")
    assert len(letters(rf"\begin{{{kind}}} a \end{{{kind}}}")) == 3


def test_in_fractions_sums_have_their_limits_beside_them() -> None:
    """As TeX does, also in display."""
    display, text = (formula_svg(r"\sum_i^n", display=way).height for way in (True, False))
    above = formula_svg(r"\frac{\sum_i^n}{y}").height - formula_svg(r"\frac{x}{y}").height
    assert above < text < display
    assert above < display - formula_svg("x").height - 2


def test_an_arrow_is_as_long_as_its_label() -> None:
    short, long = formula_svg(r"\xrightarrow{f}"), formula_svg(r"\xrightarrow{\text{many words}}")
    assert long.width > short.width + 50
    assert long.width > formula_svg(r"\text{many words}", size=16 * 0.7).width


def test_lines_of_tables_are_drawn() -> None:
    def lines(columns: str, rule: str = "") -> int:
        latex = rf"\begin{{array}}{{{columns}}} a & b \\ {rule} c & d \end{{array}}"
        return formula_svg(latex).svg.count("<rect")

    assert lines("cc") == 0
    assert lines("c|c") == 1
    assert lines("c|c", r"\hline") == 2


def test_letters_are_in_the_requested_alphabet() -> None:
    said = {
        r"\mathbb{RP}": "ℝℙ",
        r"\mathsf{ab}": "𝖺𝖻",
        r"\mathtt{ab}": "𝚊𝚋",
        r"\mathbf{a1}": "𝐚𝟏",
        r"\boldsymbol{\beta}": "𝜷",
        r"\phi\epsilon\partial": "𝜙𝜖𝜕",
    }
    for latex, expected in said.items():
        assert "".join(tree(latex).itertext()) == expected


def test_texts_keep_their_words_and_hyphens() -> None:
    (text,) = tree(r"\text{log-likelihood -- 5\,\% \& more}").iter("mtext")
    assert text.text == "log‐likelihood\u00a0–\u00a05\u2009%\u00a0&\u00a0more"


def test_a_deep_formula_costs_no_more_than_its_length() -> None:
    """Plain ziamath lays out each level twice: these formulas would take hours."""
    for opening, closing in (
        (r"\frac{1}{1+", "}"),
        (r"\left(1+", r"\right)"),
        (r"\phantom{", "}"),
        ("x^{", "}"),
        (r"\xrightarrow{", "}"),
    ):
        assert formula_svg(opening * 29 + "x" + closing * 29).width > 0


RARE = ("left", "right", "middle", "limits", "sideset", "genfrac", "smash", "rule", "root", "not")
PIECES = sorted(
    {piece for one in FORMULAS for piece in re.findall(r"\\[a-zA-Z]+|\\.|.", one["latex"])}
    | {f"\\{name}" for name in RARE}
    | {"2pt", "[", "]"}
)


@example([r"\limits", r"\frac", "1"], True)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=15), st.booleans())
def test_any_formula_is_drawn_or_rejected(pieces: list[str], display: bool) -> None:
    with contextlib.suppress(RenderError):
        assert formula_svg(" ".join(pieces), display=display).width > 0


def test_any_truncated_formula_is_drawn_or_rejected() -> None:
    cut = [one["latex"][:end] for one in FORMULAS[::3] for end in range(1, len(one["latex"]), 7)]
    refused = 0
    for latex in cut:
        with contextlib.suppress(RenderError):
            refused += 1
            assert formula_svg(latex).width > 0
            refused -= 1
    assert len(cut) / 4 < refused < len(cut)

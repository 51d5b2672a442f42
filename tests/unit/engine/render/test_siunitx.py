"""Numbers with units are written in LaTeX as siunitx sets them, or rejected with a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade_engine.render import BadFormula, formula_svg
from ade_engine.render.siunitx import (
    UnknownUnit,
    angle_latex,
    number_latex,
    quantity_latex,
    unit_latex,
)


@pytest.mark.parametrize(
    ("source", "latex"),
    [
        (r"\meter\per\second\squared", r"\mathrm{m}\,\mathrm{s}^{-2}"),
        (r"\kilo\gram\per\cubic\metre", r"\mathrm{kg}\,\mathrm{m}^{-3}"),
        (r"\square\milli\meter", r"\mathrm{mm}^{2}"),
        (r"\meter\tothe{4}", r"\mathrm{m}^{4}"),
        ("kg.m^2/s", r"\mathrm{kg}\,\mathrm{m}^{2}{/}\mathrm{s}"),
        ("W.m^{-2}", r"\mathrm{W}\,\mathrm{m}^{-2}"),
        (r"\micro\ohm", r"\mathrm{µΩ}"),
        (r"\percent", r"\mathrm{\%}"),
    ],
)
def test_units_are_read(source: str, latex: str) -> None:
    assert unit_latex(source) == latex
    assert formula_svg(rf"\SI{{1}}{{{source}}}").width > 0


@pytest.mark.parametrize(
    ("source", "latex"),
    [
        ("9.81", "9.81"),
        ("9,81", "9.81"),
        ("12345.67891", r"12\,345.678\,91"),
        ("1234", "1234"),
        ("-1.5e-3", r"{-}1.5\times 10^{-3}"),
        ("e6", "10^{6}"),
        (r"1.2 \pm 0.1", r"1.2\pm 0.1"),
        ("1.2+-0.1e3", r"(1.2\pm 0.1)\times 10^{3}"),
        ("1.234(5)", "1.234(5)"),
        (".5", "0.5"),
    ],
)
def test_numbers_are_read(source: str, latex: str) -> None:
    assert number_latex(source) == latex


def test_a_degree_follows_its_number_without_a_space() -> None:
    assert quantity_latex("90", r"\degree") == r"90\mathrm{°}"
    assert quantity_latex("25", r"\degreeCelsius") == r"25\,\mathrm{°C}"
    assert angle_latex("12;30;5") == r"12\mathrm{°}30\mathrm{′}5\mathrm{″}"


@pytest.mark.parametrize("number", ["", "x", "1.2.3", "1e", "--1", "1e5e5"])
def test_what_is_not_a_number_is_rejected(number: str) -> None:
    with pytest.raises(UnknownUnit):
        number_latex(number)


@pytest.mark.parametrize("unit", [r"\furlong", r"\per", r"\kilo", "^2", r"m^{x}", "m & s", "5"])
def test_what_is_not_a_unit_is_rejected(unit: str) -> None:
    with pytest.raises(UnknownUnit):
        unit_latex(unit)


def test_the_error_names_the_command() -> None:
    with pytest.raises(BadFormula, match=r"\\SI cannot be read: \\furlong is not a known unit"):
        formula_svg(r"\SI{1}{\furlong}")


@given(st.text(alphabet="mskg.~^{}-/ 2\\perkilo%°", max_size=30))
def test_any_unit_is_read_or_rejected(source: str) -> None:
    try:
        latex = unit_latex(source)
    except UnknownUnit:
        return
    assert latex.count("{") == latex.count("}")

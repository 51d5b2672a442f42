"""Chemical formulas are written in LaTeX that every formula can have, or rejected with a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade_engine.render import BadFormula, formula_svg
from ade_engine.render.chemistry import UnknownChemistry, chemistry_latex


@pytest.mark.parametrize(
    ("source", "latex"),
    [
        ("H2O", r"\mathrm{H}_{2}\mathrm{O}"),
        ("SO4^2-", r"\mathrm{S}\mathrm{O}_{4}^{2-}"),
        ("Na+", r"\mathrm{Na}^{+}"),
        ("[Fe(CN)6]^3-", r"[\mathrm{Fe}(\mathrm{C}\mathrm{N})_{6}]^{3-}"),
        ("Fe^{III}", r"\mathrm{Fe}^{\mathrm{III}}"),
        ("2 H2", r"2\,\mathrm{H}_{2}"),
        ("1/2 O2", r"\tfrac{1}{2}\,\mathrm{O}_{2}"),
        ("n H2O", r"n\,\mathrm{H}_{2}\mathrm{O}"),
        ("^{14}_{6}C", r"\prescript{14}{6}{\mathrm{C}}"),
        ("CuSO4 * 5 H2O", r"\mathrm{Cu}\mathrm{S}\mathrm{O}_{4}\cdot 5\,\mathrm{H}_{2}\mathrm{O}"),
        ("CH2=CH2", r"\mathrm{C}\mathrm{H}_{2}{=}\mathrm{C}\mathrm{H}_{2}"),
        ("HC#CH", r"\mathrm{H}\mathrm{C}{\equiv}\mathrm{C}\mathrm{H}"),
        ("A + B -> C", r"\mathrm{A}+\mathrm{B}\longrightarrow \mathrm{C}"),
        ("A ->[\\Delta][H+] B", r"\mathrm{A}\xrightarrow[\mathrm{H}^{+}]{\Delta } \mathrm{B}"),
        ("AgCl v", r"\mathrm{Ag}\mathrm{Cl}\downarrow "),
        ("CO2 ^", r"\mathrm{C}\mathrm{O}_{2}\uparrow "),
        ("H2O (l)", r"\mathrm{H}_{2}\mathrm{O}\,(\mathrm{l})"),
        ("OH^.", r"\mathrm{O}\mathrm{H}^{\bullet}"),
        ("NO_x", r"\mathrm{N}\mathrm{O}_{x}"),
    ],
)
def test_formulas_and_equations_are_read(source: str, latex: str) -> None:
    assert chemistry_latex(source) == latex
    assert formula_svg(rf"\ce{{{source}}}").width > 0


@pytest.mark.parametrize(
    "source",
    ["A <=>> B", "Na+Cl-", "A ->[b", "a ^_", "H&", r"A\bond{~}B", "$x", "{" * 30 + "}" * 30],
)
def test_what_cannot_be_read_is_rejected(source: str) -> None:
    with pytest.raises(UnknownChemistry):
        chemistry_latex(source)


def test_the_error_has_the_place_of_the_command() -> None:
    with pytest.raises(BadFormula, match=r"\\ce cannot be read: arrows .*column 5"):
        formula_svg("x + \\ce{A <=>> B}")


@given(st.text(alphabet="HOab2+-^_{}[]()$<=>.* \\v#,1/", max_size=30))
def test_any_text_is_read_or_rejected(source: str) -> None:
    try:
        latex = chemistry_latex(source)
    except UnknownChemistry:
        return
    assert len(latex) <= 40 * len(source)

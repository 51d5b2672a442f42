"""A wrong formula is rejected with the position of the error; others are prepared."""

import pytest

from ade_engine.render import BadFormula, formula_svg
from ade_engine.render.extracted import ClassMark, ExtractedText, OperatorName, TextRun
from ade_engine.render.latex import CHARS_MAX, DEPTH_MAX, prepare


@pytest.mark.parametrize(
    ("latex", "said", "line", "column"),
    [
        (r"\frac{1}{2", "{ is never closed", 1, 9),
        ("a + b}", "} closes nothing", 1, 6),
        (r"\left( x + 1", r"\left is never closed", 1, 1),
        (r"x \right)", r"\right closes nothing", 1, 3),
        ("\\begin{matrix}\na \\end{pmatrix}", r"\end{pmatrix} cannot close \begin{matrix}", 2, 3),
        (r"\left( {x \right)", r"\right cannot close { of line 1, column 8", 1, 11),
        (r"\begin{tikzpicture} x \end{tikzpicture}", "'tikzpicture' is not known", 1, 1),
        ("x^2 +\n\\foo{x}", r"The command \foo is not known", 2, 1),
        (r"\def\x{1} \x", r"\def is not allowed: a formula cannot define commands", 1, 1),
        (r"\newcommand{\x}{1}", "cannot define commands", 1, 1),
        (r"a \href{x}{y}", r"\href is not allowed", 1, 3),
        ("a & b", "A & is only allowed in a matrix", 1, 3),
        ("a $ b", "A $ is not allowed inside a formula", 1, 3),
        ("a # b", "A # is not allowed inside a formula", 1, 3),
        (r"\text{a", r"The argument of \text is missing or never closed", 1, 1),
        (r"\text a", r"\text needs its content in braces", 1, 1),
        (r"\text{a $b c}", "$ in a text is never closed", 1, 9),
        (r"\text{\alpha}", r"\alpha is not allowed in a text", 1, 7),
        (r"\textcolor{nocolour}{x}", "The colour 'nocolour' is unknown", 1, 1),
        (r"\not\sqrt{x}", r"The command \not cannot strike out what follows", 1, 1),
        ("a 中 b", "The font has no glyph for '中'", 1, 3),
        ("a \x07 b", "The character U+0007 is not allowed in a formula", 1, 3),
        ("a \ue000 b", "The character U+E000 is not allowed in a formula", 1, 3),
    ],
)
def test_an_error_has_its_position(latex: str, said: str, line: int, column: int) -> None:
    with pytest.raises(BadFormula) as caught:
        formula_svg(latex)
    assert said in str(caught.value)
    assert caught.value.details() == {"line": line, "column": column}


@pytest.mark.parametrize(
    ("latex", "said"),
    [
        ("", "The formula is empty"),
        ("$ $", "The formula is empty"),
        (
            "x" * (CHARS_MAX + 1),
            f"has {CHARS_MAX + 1:,} characters; at most {CHARS_MAX:,} are allowed",
        ),
        ("{" * (DEPTH_MAX + 1) + "}" * (DEPTH_MAX + 1), f"more than {DEPTH_MAX} deep"),
        (r"\sqrt " * 800 + "x", "nested too deeply"),
        ("x^", "Nothing follows a ^ or _"),
        ("x^1^2", "Two superscripts follow each other"),
        ("x_1_2", "Two subscripts follow each other"),
        (r"\frac{1}", "not complete"),
        (r"\sqrt", "ends where something must follow"),
        (r"{a \over}", "nothing below its line"),
        (r"\text{see $\foo$}", r"In a text: The command \foo is not known"),
        (r"\left\text{a} x \right)", "not allowed at this position"),
    ],
)
def test_an_error_of_the_whole_formula_is_reported(latex: str, said: str) -> None:
    with pytest.raises(BadFormula) as caught:
        formula_svg(latex)
    assert said in str(caught.value)


def test_a_formula_can_be_as_long_and_as_deep_as_the_limits_say() -> None:
    assert prepare("x" * CHARS_MAX).latex == "x" * CHARS_MAX
    assert formula_svg("{" * DEPTH_MAX + "x" + "}" * DEPTH_MAX).width > 0


@pytest.mark.parametrize(
    "wrapped", ["$x+1$", "$$x+1$$", r"\[x+1\]", r"\(x+1\)", "  x+1 \n", "x+1 % so it is"]
)
def test_math_delimiters_around_a_formula_are_removed(wrapped: str) -> None:
    assert prepare(wrapped).latex.strip() == "x+1"


def test_texts_are_split_into_runs() -> None:
    (text,) = prepare(r"\text{50\% of $n$, \textbf{so~it} is}").extracted
    assert isinstance(text, ExtractedText)
    assert [run for run in text.runs if run.content] == [
        TextRun("50% of "),
        TextRun("n", is_formula=True),
        TextRun(", "),
        TextRun("so\u00a0it", "bold"),
        TextRun(" is"),
    ]


def test_operators_and_class_marks_leave_a_placeholder() -> None:
    source = prepare(r"\operatorname*{arg\,max}_x \mathrel{R} y")
    assert source.extracted == [OperatorName("arg\u2009max", with_limits=True), ClassMark("rel")]
    assert source.latex.replace(" ", "") == "\ue000_x\ue001{R}y"


def test_environments_and_rows_are_renamed_for_the_converter() -> None:
    aligned = prepare("\\begin{aligned} a &= b \\\\[2pt] c &= d \\end{aligned}").latex
    assert aligned.split() == prepare(r"\begin{align*} a &= b \\ c &= d \end{align*}").latex.split()
    assert prepare(r"\begin{equation} E \label{eq:1} \nonumber \end{equation}").latex.strip() == "E"


@pytest.mark.parametrize(
    ("latex", "read_as"),
    [
        (r"\kern .5em x", r"\kern {0.5em} x"),
        (r"\hspace{-1 em}x", r"\hspace {-1em}x"),
        (r"\hspace*{ +2.50cm }x", r"\hspace{2.5cm}x"),
        (r"\mkern-18mu x", r"\mkern {-18mu} x"),
        (r"\hskip 3 % a comment" "\n" r"pt x", r"\hskip {3pt} x"),
        (r"\rule{1em}{0.50em}", r"\rule {1em}{0.5em}"),
        (r"\hspace{100em}", r"\hspace {100em}"),
    ],
)
def test_lengths_are_normalized(latex: str, read_as: str) -> None:
    assert prepare(latex).latex == read_as


@pytest.mark.parametrize(
    "latex",
    [
        r"\kern 1e9pt x",
        r"\hspace{1e300em}x",
        r"\hspace{101em}x",
        r"\hspace{-101em}x",
        r"\mskip 99999mu x",
        r"\rule{1em}{9999em}",
        r"\hspace{" + "9" * 4_000 + "em}",
        r"\hspace{.em}x",
        r"\hspace{1.2.3em}x",
        r"\hspace{}x",
        r"\hspace{2}x",
        r"\hspace{2yd}x",
        r"\hspace{nan em}x",
        r"\hspace{0.5\textwidth}x",
        r"\kern",
        r"\kern 2",
        r"\hspace{1em",
    ],
)
def test_invalid_and_excessive_lengths_are_rejected(latex: str) -> None:
    with pytest.raises(BadFormula) as caught:
        prepare(latex)
    assert caught.value.details() == {"line": 1, "column": 1}

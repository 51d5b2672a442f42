"""No untrusted text makes a regular expression take more than linear time."""

import re
import time
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ade_engine.export import characters, document_reader, markdown
from ade_engine.render import BadDiagram, BadFormula, dot, latex_tokens
from ade_engine.render.raster import FONT_FAMILY
from ade_engine.render.safe_svg import ATTRIBUTES, REFERENCE

pytestmark = pytest.mark.slow

# Less than this is noise.
FLOOR_SECONDS = 0.01
CHARS_FIRST, CHARS_MAX = 8, 20_000
# Four is what work has that grows with the square; two is what it should have.
GROWTH_MAX = 3.0
TRIES_OF_SUSPECTS = 10

PIECES = st.text(st.sampled_from("1.,e+- z()\"'\\<>!-*/#ut{}[]$&;a\n\x1bm"), max_size=4)
UNITS = PIECES.filter(bool)


def cpu_seconds(act: Callable[[], object], tries: int) -> float:
    """Return the shortest CPU time of several tries; the others were disturbed."""
    took = []
    for _ in range(tries):
        before = time.process_time()
        act()
        took.append(time.process_time() - before)
    return min(took)


def grows_linearly(act: Callable[[str], object], before: str, unit: str, after: str) -> bool:
    """Tell whether twice the text takes about twice the time, from short ones to long ones.

    Short ones come first: what grows exponentially is found before it takes too long.
    """
    chars, last = CHARS_FIRST, FLOOR_SECONDS
    while chars <= CHARS_MAX:
        text = before + unit * (chars // len(unit)) + after
        most = GROWTH_MAX * max(last, FLOOR_SECONDS)
        took = cpu_seconds(partial(act, text), 2)
        if took > most and (took := cpu_seconds(partial(act, text), TRIES_OF_SUSPECTS)) > most:
            return False
        chars, last = chars * 2, took
    return True


def ignoring_errors(act: Callable[[str], object]) -> Callable[[str], None]:
    """Wrap a function that may reject its text."""

    def tried(text: str) -> None:
        try:
            act(text)
        except (BadDiagram, BadFormula):
            return

    return tried


FORMS = {form: name for name, form in ATTRIBUTES.items()}  # many attributes share one
READERS: dict[str, Callable[[str], object]] = {
    **{name: form.fullmatch for form, name in FORMS.items()},
    "reference": REFERENCE.fullmatch,
    "family": lambda text: FONT_FAMILY.sub("", text),
    "dot": ignoring_errors(dot.check),
    "dot defaults": lambda text: dot.with_defaults(text, "a"),
    "latex": lambda text: list(latex_tokens.TOKEN.finditer(text)),
    "characters": characters.clean,
    "breakable": characters.breakable,
    "plain": markdown.plain,
    "number": document_reader._NUMBER.fullmatch,
}


@pytest.mark.parametrize(
    ("before", "unit", "after"),
    [
        ("", "1", "z"),
        ("", "1.", "z"),
        ("", "1 ", "z"),
        ("", " ", "z"),
        ("1e", "1", "z"),
        ("", "matrix(1)", "z"),
        ("", "matrix(", ""),
        ("", "a", "\n"),
        ("", '"', ""),
        ('"', '\\"', ""),
        ("", "/* ", ""),
        ("/", "*", ""),
        ("<", "<!--", ""),
        ("<", "<", ""),
        ("<", "face= ", ""),
        ("<", 'face=" ', ""),
        ("", '"a"+', ""),
        ("", "\\begin{", ""),
        ("", "\\\\[1", ""),
        ("", "\x1b[1", ""),
        ("", "\n ", "z"),
    ],
)
@pytest.mark.parametrize("name", READERS)
def test_inputs_that_often_cause_backtracking_do_not(
    name: str, before: str, unit: str, after: str
) -> None:
    assert grows_linearly(READERS[name], before, unit, after)


@settings(max_examples=15, deadline=None)
@given(before=PIECES, unit=UNITS, after=PIECES)
@pytest.mark.parametrize("name", READERS)
def test_twice_the_text_takes_twice_the_time(name: str, before: str, unit: str, after: str) -> None:
    assert grows_linearly(READERS[name], before, unit, after)


def test_a_slow_expression_would_be_detected() -> None:
    exponential = re.compile(r"(?:\d+\.?\d*)+")
    quadratic = re.compile(r"/\*.*?\*/", re.DOTALL)
    assert not grows_linearly(exponential.fullmatch, "", "1", "z")
    assert not grows_linearly(quadratic.findall, "", "/* ", "")

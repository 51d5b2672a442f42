"""Untrusted text: which characters are removed, and where very long words can break."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade_engine.export.characters import (
    UNPRINTABLE,
    WORD_CHARS_MAX,
    ZERO_WIDTH_SPACE,
    breakable,
    clean,
    one_line,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nb\rc", "a\nb\nc"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://a\x07link\x1b]8;;\x07", "link"),
        ("nul\x00 bell\x07", "nul bell"),
        ("half \ud800 pair", "half \N{REPLACEMENT CHARACTER} pair"),
        ("line\u2028end", "line\nend"),
        ("tab\tstays", "tab\tstays"),
    ],
)
def test_characters_that_cannot_be_shown_are_removed(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(st.text(st.characters(codec=None, exclude_categories=[])))
def test_the_remaining_characters_can_be_encoded_and_shown(text: str) -> None:
    cleaned = clean(text)
    assert cleaned.encode().decode() == cleaned
    assert UNPRINTABLE.search(cleaned) is None
    assert "\n" not in one_line(text)


def test_ordinary_words_are_not_broken() -> None:
    text = "Donaudampfschifffahrtskapitän and https://a.b"
    assert breakable(text) == text


def test_urls_can_break_at_their_separators() -> None:
    address = "https://example.org/some/long/path"
    assert breakable(address).split(ZERO_WIDTH_SPACE) == [
        "https://",
        "example.",
        "org/",
        "some/",
        "long/",
        "path",
    ]


@given(st.text(min_size=1), st.integers(2, 60))
def test_breaks_change_nothing_else(text: str, chars_max: int) -> None:
    assert breakable(text, chars_max).replace(ZERO_WIDTH_SPACE, "") == text.replace(
        ZERO_WIDTH_SPACE, ""
    )


@pytest.mark.parametrize("letters", [WORD_CHARS_MAX + 1, 200, 5_000, 100_000])
def test_a_very_long_word_has_breaks_but_not_too_many(letters: int) -> None:
    pieces = breakable("x" * letters).split(ZERO_WIDTH_SPACE)
    assert max(map(len, pieces)) <= WORD_CHARS_MAX
    assert len(pieces) < 5_000


def test_marks_stay_with_their_letters() -> None:
    pieces = breakable("e\N{COMBINING ACUTE ACCENT}" * 40).split(ZERO_WIDTH_SPACE)
    assert set(pieces) == {"e\N{COMBINING ACUTE ACCENT}"}


def test_scripts_without_spaces_are_left_to_typst() -> None:
    text = "漢字" * 100
    assert breakable(text) == text

"""What is not contained, or not classified correctly, today: a test that shows it, where, and why.

Each line is a strict expectation: when the gap is closed its test fails, and the line is deleted.
"""

from tests.sandbox.modes import LANDLOCK, MODES

EVERYWHERE = tuple(mode.name for mode in MODES)
WITHOUT_NAMESPACES = tuple(mode.name for mode in MODES if mode.level == LANDLOCK)
WITH_NAMESPACES = tuple(mode.name for mode in MODES if mode.level != LANDLOCK)


GAPS: dict[str, tuple[tuple[str, ...], str]] = {}

BY_CHANCE: set[str] = set()
# Situations in which no job runs at all.
SHUT: dict[str, str] = {}


def reason(snippet: str, mode: str) -> str | None:
    """Say why a snippet is known not to be contained in a situation; None if it must be."""
    modes, why = GAPS.get(snippet, ((), ""))
    return SHUT.get(mode) or (why if mode in modes else None)

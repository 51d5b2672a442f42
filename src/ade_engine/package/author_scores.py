"""Accept the scores that an author's detectors return.

Scores are recorded, and a detector computes them from cells. They are therefore clipped and rounded
before they are used, so that they cannot hold more than a rough number: `return column.max()` is
recorded as 1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ade_engine.package.functions import AuthorFunction

SCORE_MAX = 1.0
SCORE_DIGITS = 2


def author_scores(
    function: AuthorFunction, result: Any, own: str, known: Collection[str], what: str
) -> Iterator[tuple[str, float]]:
    """Yield (name, score) for each score in a detector's result, of which None changes nothing.

    `own` is the name that a single number scores, `known` are the names that a mapping may have,
    and `what` says what they name.
    """
    pairs = result.items() if isinstance(result, Mapping) else [(own, result)]
    for name, score in pairs:
        if not isinstance(name, str) or name not in known:
            raise function.failures.misused(function, f"It may only score {what}.")
        if score is not None:
            yield name, _bounded(function, score, what)


def _bounded(function: AuthorFunction, score: Any, what: str) -> float:
    try:
        number = math.nan if isinstance(score, str | bytes) else float(score)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        wants = f"It must return a number from -1 to 1, a mapping of {what} to numbers, or None."
        raise function.failures.misused(function, wants)
    return round(min(max(number, -SCORE_MAX), SCORE_MAX), SCORE_DIGITS)

"""Which failures ADE tries again by itself, and how long it waits."""

from ade.domain.outcome import Category

# A DEPENDENCY_ERROR may succeed later, but only a person knows when.
RETRIED_BY_ITSELF = frozenset({Category.INTERNAL_ERROR})

BACKOFF_SECONDS_FIRST = 1
BACKOFF_SECONDS_MAX = 60


def tries_again(category: Category, retries_left: int) -> bool:
    """Tell whether a failure of this category leads to another attempt."""
    return category in RETRIED_BY_ITSELF and retries_left > 0


def backoff_seconds(attempt: int) -> int:
    """Return the wait before the attempt after this one: 1, 2, 4, ... up to a minute."""
    return int(min(BACKOFF_SECONDS_FIRST << min(max(attempt - 1, 0), 10), BACKOFF_SECONDS_MAX))

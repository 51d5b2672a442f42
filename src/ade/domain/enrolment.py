"""What an agent may be called, and how long its code and its former key work."""

import re
from collections.abc import Collection

from ade.domain.errors import InvalidRequest
from ade.domain.units import MICROSECONDS

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
LABEL_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:/=-]{0,99}$"
LABELS_MAX = 50
CODE_MINUTES = 60
CODE_MINUTES_MAX = 7 * 24 * 60
OVERLAP_MINUTES = 60
OVERLAP_MINUTES_MAX = 7 * 24 * 60


def check_agent(name: str, labels: Collection[str]) -> None:
    """Raise InvalidRequest if an agent cannot have this name or these labels."""
    if re.fullmatch(NAME_PATTERN, name) is None:
        raise InvalidRequest(
            f"An agent cannot be called {name[:100]!r}: use up to 100 letters, digits, and . _ -,"
            " beginning with a letter or digit."
        )
    if len(labels) > LABELS_MAX:
        raise InvalidRequest(f"An agent has at most {LABELS_MAX} labels.")
    for label in labels:
        if re.fullmatch(LABEL_PATTERN, label) is None:
            raise InvalidRequest(
                f"{label[:100]!r} cannot be a label: use up to 100 letters, digits,"
                " and . _ : / = -, beginning with a letter or digit."
            )


def minutes_after(now_us: int, minutes: int) -> int:
    """Return the time some minutes later."""
    return now_us + minutes * 60 * MICROSECONDS

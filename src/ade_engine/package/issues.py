"""What validators return: a code, a severity and a message, never a value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from ade_engine.package.author_errors import Misuse
from ade_engine.package.mask import Mask

CODE = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
MESSAGE_CHARACTERS_MAX = 300


class Severity(StrEnum):
    """How severe an issue is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True)
class Issue:
    """A problem with one value, or with a table as a whole."""

    code: str
    severity: str = Severity.ERROR
    message: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.code, str) or not CODE.fullmatch(self.code):
            raise Misuse("an issue's code must be lower case, such as invalid_format")
        if self.severity not in list(Severity):
            raise Misuse("an issue's severity must be error, warning or info")
        if not isinstance(self.message, str) or len(self.message) > MESSAGE_CHARACTERS_MAX:
            raise Misuse(
                f"an issue's message must have at most {MESSAGE_CHARACTERS_MAX} characters"
            )
        object.__setattr__(self, "severity", Severity(self.severity))


@dataclass(frozen=True)
class Issues:
    """One problem of the cells of a chunk that `where` marks."""

    issue: Issue
    where: Mask

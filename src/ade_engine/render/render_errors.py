"""What can be wrong with an object that is to be drawn, in the words of a job's error.

```
RenderError
├── BadFormula          BAD_FORMULA          USER_CODE_ERROR    not LaTeX, or not known here
├── BadDiagram          BAD_DIAGRAM          USER_CODE_ERROR    not DOT, or beyond a limit
├── BadPicture          BAD_PICTURE          USER_CODE_ERROR    too large to be drawn
└── GraphvizNotFound    GRAPHVIZ_NOT_FOUND   DEPENDENCY_ERROR   `dot` cannot be run here
```

They are no kind of `EngineError`: those are about workbooks, and are recorded in artifacts.
"""

from __future__ import annotations

from typing import Any, ClassVar


class RenderError(Exception):
    """The object cannot be drawn.

    `line` and `column` count from 1 and are told as far as they are known.
    """

    code: ClassVar[str] = "RENDER_ERROR"
    category: ClassVar[str] = "USER_CODE_ERROR"

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.place = {
            name: number
            for name, number in (("line", line), ("column", column))
            if number is not None
        }

    def __str__(self) -> str:
        place = ", ".join(f"{name} {number}" for name, number in self.place.items())
        return f"{self.message} ({place})." if place else f"{self.message}."

    def details(self) -> dict[str, Any]:
        """Say where it is wrong."""
        return dict(self.place)


class BadFormula(RenderError):
    """The formula is not LaTeX, or uses what is not known here."""

    code = "BAD_FORMULA"


class BadDiagram(RenderError):
    """The diagram is not DOT, or asks for what is not allowed."""

    code = "BAD_DIAGRAM"


class BadPicture(RenderError):
    """The picture is too large to be drawn."""

    code = "BAD_PICTURE"


class GraphvizNotFound(RenderError):
    """Diagrams need the program `dot`, and it cannot be run here."""

    code = "GRAPHVIZ_NOT_FOUND"
    category = "DEPENDENCY_ERROR"

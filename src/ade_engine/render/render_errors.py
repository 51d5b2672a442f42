"""The errors of drawing; each class declares the code and category of the job error.

```
RenderError
├── BadFormula          BAD_FORMULA          USER_CODE_ERROR    not LaTeX, or not supported
├── BadDiagram          BAD_DIAGRAM          USER_CODE_ERROR    not DOT, or beyond a limit
├── BadPicture          BAD_PICTURE          USER_CODE_ERROR    too large to be drawn
└── GraphvizNotFound    GRAPHVIZ_NOT_FOUND   DEPENDENCY_ERROR   `dot` cannot be run
```

They do not derive from `EngineError`, whose classes are about workbooks and end up in artifacts.
"""

from __future__ import annotations

from typing import Any, ClassVar


class RenderError(Exception):
    """The object cannot be drawn.

    `line` and `column` count from 1; each is None if it is unknown.
    """

    code: ClassVar[str] = "RENDER_ERROR"
    category: ClassVar[str] = "USER_CODE_ERROR"

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = {
            name: number
            for name, number in (("line", line), ("column", column))
            if number is not None
        }

    def __str__(self) -> str:
        position = ", ".join(f"{name} {number}" for name, number in self.position.items())
        return f"{self.message} ({position})." if position else f"{self.message}."

    def details(self) -> dict[str, Any]:
        """Return the position of the error, as far as it is known."""
        return dict(self.position)


class BadFormula(RenderError):
    """The formula is not LaTeX, or uses a command that is not supported."""

    code = "BAD_FORMULA"


class BadDiagram(RenderError):
    """The diagram is not DOT, or uses what is not allowed."""

    code = "BAD_DIAGRAM"


class BadPicture(RenderError):
    """The drawing or image is too large."""

    code = "BAD_PICTURE"


class GraphvizNotFound(RenderError):
    """Diagrams need the program `dot`, and it cannot be run."""

    code = "GRAPHVIZ_NOT_FOUND"
    category = "DEPENDENCY_ERROR"

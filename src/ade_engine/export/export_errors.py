"""What can be wrong with a document that is to be exported, in the words of a job's error.

```
ExportError
├── BadImage        BAD_IMAGE             VALIDATION_ERROR    no image, another one, too large
├── TooLarge        DOCUMENT_TOO_LARGE    VALIDATION_ERROR    more than can be laid out
├── NoSuchPage      NO_SUCH_PAGE          VALIDATION_ERROR    a page that is not there
└── LayoutFailed    LAYOUT_FAILED         USER_CODE_ERROR     the typesetter gave up
```
"""

from __future__ import annotations

from typing import Any, ClassVar


class ExportError(Exception):
    """The document cannot be exported; `object_id` names what it is about, if it is about one."""

    code: ClassVar[str] = "EXPORT_ERROR"
    category: ClassVar[str] = "VALIDATION_ERROR"

    def __init__(self, message: str, *, object_id: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.object_id = object_id

    def __str__(self) -> str:
        return (
            f"{self.message} (object {self.object_id})." if self.object_id else f"{self.message}."
        )

    def details(self) -> dict[str, Any]:
        """Say which object is meant."""
        return {"object_id": self.object_id} if self.object_id else {}


class BadImage(ExportError):
    """The image is not one, is not of the type that it claims to be, or is too large."""

    code = "BAD_IMAGE"


class TooLarge(ExportError):
    """The document holds more than can be laid out."""

    code = "DOCUMENT_TOO_LARGE"


class NoSuchPage(ExportError):
    """The document has fewer pages."""

    code = "NO_SUCH_PAGE"


class LayoutFailed(ExportError):
    """The typesetter gave up on what it must be able to set."""

    # Not ADE's own failure, though it may be: what runs behind the walls cannot claim that.
    code = "LAYOUT_FAILED"
    category = "USER_CODE_ERROR"

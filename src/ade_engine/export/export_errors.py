"""The errors of an export; each class declares the code and category of the job error.

```
ExportError
├── BadImage            BAD_IMAGE             VALIDATION_ERROR    not an image, or too large
├── DocumentTooLarge    DOCUMENT_TOO_LARGE    VALIDATION_ERROR    more than can be typeset
├── NoSuchPage          NO_SUCH_PAGE          VALIDATION_ERROR    the document has fewer pages
└── LayoutFailed        LAYOUT_FAILED         USER_CODE_ERROR     Typst failed
```
"""

from __future__ import annotations

from typing import Any, ClassVar


class ExportError(Exception):
    """The document cannot be exported; `object_id` names the object at fault, if it is one."""

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
        """Return which object is at fault."""
        return {"object_id": self.object_id} if self.object_id else {}


class BadImage(ExportError):
    """The image is not one, is not of the type that it claims to be, or is too large."""

    code = "BAD_IMAGE"


class DocumentTooLarge(ExportError):
    """The document has more content than can be typeset."""

    code = "DOCUMENT_TOO_LARGE"


class NoSuchPage(ExportError):
    """The document has fewer pages."""

    code = "NO_SUCH_PAGE"


class LayoutFailed(ExportError):
    """Typst failed on a document that it should be able to typeset."""

    # It may be a fault of ADE, but a process inside the sandbox is not trusted to report one.
    code = "LAYOUT_FAILED"
    category = "USER_CODE_ERROR"

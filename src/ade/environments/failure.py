"""Why a build came to nothing, in words for whoever wrote the configuration."""

import json

from ade.domain.outcome import Category, JobError
from ade.store.library import Build

MESSAGE_CHARS_MAX = 2_000
CANCELLED = "the build was cancelled."


class BuildFailed(Exception):
    """Say what is wrong and what to do; no path of this machine, no traceback."""

    def __init__(
        self,
        message: str,
        code: str = "PACKAGES_NOT_INSTALLED",
        category: Category = Category.DEPENDENCY_ERROR,
    ) -> None:
        super().__init__(message)
        self.error = JobError(category, code, message[:MESSAGE_CHARS_MAX])


def refused(message: str) -> BuildFailed:
    """Say that the requirements are not such as are let through."""
    return BuildFailed(message, "REQUIREMENTS_REFUSED", Category.VALIDATION_ERROR)


def ours(message: str, code: str = "BUILDER_ERROR") -> JobError:
    """Say that ADE itself failed, and not the configuration."""
    return JobError(Category.INTERNAL_ERROR, code, message[:MESSAGE_CHARS_MAX])


def spelled(error: JobError) -> str:
    """Spell an error as a build's row holds it."""
    return json.dumps(error.as_dict())


def reason_of(build: Build) -> str | None:
    """Say why a build that has ended is of no use; None if it is ready."""
    if build.status == "ready":
        return None
    return str(json.loads(build.error)["message"]) if build.error else CANCELLED

"""Why a build came to nothing, in words for whoever wrote the configuration.

None of them holds a path of this machine or a traceback.
"""

import json

from ade.domain.outcome import Category, JobError

MESSAGE_CHARS_MAX = 2_000


class BuildFailed(Exception):
    """Carry why a build cannot go on."""

    def __init__(self, error: JobError) -> None:
        super().__init__(error.message)
        self.error = error


def refused(message: str) -> BuildFailed:
    """Say that the requirements are not such as are let through."""
    return BuildFailed(JobError(Category.VALIDATION_ERROR, "REQUIREMENTS_REFUSED", message))


def not_installed(message: str) -> BuildFailed:
    """Say that the packages could not be had, do not fit together, or are too large."""
    short = message[:MESSAGE_CHARS_MAX]
    return BuildFailed(JobError(Category.DEPENDENCY_ERROR, "PACKAGES_NOT_INSTALLED", short))


def unwalled(message: str) -> BuildFailed:
    """Say that no sandbox is strong enough for hooks here."""
    return BuildFailed(JobError(Category.INTERNAL_ERROR, "SANDBOX_UNAVAILABLE", message))


def too_long(timeout_seconds: float, step: str) -> JobError:
    """Say that the build took longer than it may, and where it was."""
    message = (
        f"The build took longer than ADE_BUILD_TIMEOUT allows ({timeout_seconds:g} s)"
        f" and was stopped while {step}."
    )
    return JobError(Category.RESOURCE_LIMIT, "BUILD_TIMED_OUT", message)


def environment_gone(message: str) -> JobError:
    """Say that a build was ready and is not any more."""
    return JobError(Category.INTERNAL_ERROR, "ENVIRONMENT_GONE", message)


def broken(message: str) -> JobError:
    """Say that ADE itself failed, and not the configuration."""
    return JobError(Category.INTERNAL_ERROR, "BUILDER_ERROR", message)


def spelled(error: JobError) -> str:
    """Spell an error as a build's row holds it."""
    return json.dumps(error.as_dict())

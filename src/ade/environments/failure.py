"""Why a build failed, in words for the author of the configuration.

No message holds a path of this machine or a traceback.
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
    """Say that requirements.txt holds something that is not allowed."""
    return BuildFailed(JobError(Category.VALIDATION_ERROR, "REQUIREMENTS_REFUSED", message))


def not_installed(message: str) -> BuildFailed:
    """Say that the packages were not found, conflict with each other, or are too large."""
    short = message[:MESSAGE_CHARS_MAX]
    return BuildFailed(JobError(Category.DEPENDENCY_ERROR, "PACKAGES_NOT_INSTALLED", short))


def sandbox_unavailable(message: str) -> BuildFailed:
    """Say that the sandbox of this worker is too weak for hooks."""
    return BuildFailed(JobError(Category.INTERNAL_ERROR, "SANDBOX_UNAVAILABLE", message))


def too_long(timeout_seconds: float, step: str) -> JobError:
    """Say that the build took longer than it may, and where it was."""
    message = (
        f"The build took longer than ADE_BUILD_TIMEOUT allows ({timeout_seconds:g} s)"
        f" and was stopped while {step}."
    )
    return JobError(Category.RESOURCE_LIMIT, "BUILD_TIMED_OUT", message)


def environment_gone(message: str) -> JobError:
    """Say that the packages of a ready build are gone."""
    return JobError(Category.INTERNAL_ERROR, "ENVIRONMENT_GONE", message)


def broken(message: str) -> JobError:
    """Say that ADE itself failed, and not the configuration."""
    return JobError(Category.INTERNAL_ERROR, "BUILDER_ERROR", message)


def error_json(error: JobError) -> str:
    """Return an error as the row of a build holds it."""
    return json.dumps(error.as_dict())

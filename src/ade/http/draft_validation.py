"""Validate a draft: read its requirements here, and load its package in the sandbox."""

import asyncio
import contextlib
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ade.domain.configuration import manifest_digest
from ade.domain.errors import SAFE_MODE_DETAIL, NotFound, SafeMode, Unavailable
from ade.domain.outcome import Category, JobError
from ade.environments import EnvironmentGone
from ade.environments.failure import BuildFailed
from ade.environments.requirements import FILE as REQUIREMENTS
from ade.environments.requirements import read_requirements
from ade.environments.shared import SharedEnvironments
from ade.http.config_files import ConfigurationFiles
from ade.http.context import AppContext
from ade.http.schemas.catalogue import CheckBody, ProblemFound
from ade.store.rows import File

ENTRY = "ade_engine.entry.check"
FOLDER = "config"
BUILDS_LOOKED_AT = 20
FETCH_SECONDS = 60.0
MISSING = "dependency_missing"
NOT_YET = "Its packages are installed when a version is activated; check it again after that."


class _Checked(BaseModel):
    """What the check printed; untrusted, because the draft's own code runs in it."""

    model_config = ConfigDict(extra="ignore")

    valid: bool
    problems: list[ProblemFound]
    fields: list[dict[str, str]]


async def check_draft(
    context: AppContext, config_files: ConfigurationFiles, workspace_id: str, configuration_id: str
) -> CheckBody:
    """List everything that is wrong with a draft."""
    if context.safe_mode:
        raise SafeMode(SAFE_MODE_DETAIL)
    files = await context.catalogue.draft(workspace_id, configuration_id)
    paths = await asyncio.to_thread(config_files.paths, files, FOLDER)
    requirements, refused = await _requirements(config_files, files)
    environment = None
    if requirements:
        built = await _environment(context, workspace_id, configuration_id, files)
        environment = await _on_this_disk(context, built)
    checked = await _check(context, workspace_id, paths, environment)
    problems = [*refused, *checked.problems]
    if requirements and environment is None:
        problems = [_not_yet(problem) for problem in problems]
    return {
        "valid": not any(problem["severity"] == "error" for problem in problems),
        "digest": manifest_digest(files),
        "problems": problems,
        "fields": checked.fields,
    }


async def _requirements(
    config_files: ConfigurationFiles, files: list[File]
) -> tuple[list[str], list[ProblemFound]]:
    """Read the requirements to install, and the problems with them."""
    for file in files:
        if file.path == REQUIREMENTS:
            try:
                return read_requirements(await config_files.read(file)), []
            except BuildFailed as failed:
                return [], [_problem("requirements_refused", failed.error.message, REQUIREMENTS)]
    return [], []


async def _environment(
    context: AppContext, workspace_id: str, configuration_id: str, files: list[File]
) -> str | None:
    """Find an environment that was built for the same requirements."""
    wanted = {file.digest for file in files if file.path == REQUIREMENTS}
    catalogue = context.catalogue
    for build in await catalogue.list_builds(
        workspace_id,
        configuration_id=configuration_id.lower(),
        status="ready",
        before=None,
        limit=BUILDS_LOOKED_AT,
    ):
        with contextlib.suppress(NotFound):
            version = await catalogue.find_version(workspace_id, build.version_id or "")
            if {file.digest for file in version.files if file.path == REQUIREMENTS} == wanted:
                return build.environment
    return None


async def _on_this_disk(context: AppContext, environment: str | None) -> str | None:
    """Fetch an environment that another host made; without it, packages count as not installed."""
    if environment is None:
        return None
    shared = SharedEnvironments(context.catalogue.environments, context.blobs, context.settings)
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            return await shared.obtain(environment)
    except (TimeoutError, Unavailable, BuildFailed):
        return None


async def _check(
    context: AppContext, workspace_id: str, paths: dict[str, Any], environment: str | None
) -> _Checked:
    inputs = {"config": FOLDER}
    tasks = context.require_inline_tasks
    try:
        outcome = await tasks.run(workspace_id, ENTRY, inputs, paths, environment)
    except EnvironmentGone:
        outcome = await tasks.run(workspace_id, ENTRY, inputs, paths)
    if outcome.error is not None:
        return _Checked(valid=False, problems=[_failed(outcome.error)], fields=[])
    try:
        return _Checked.model_validate((outcome.result or {})["outputs"]["result_json"])
    except ValidationError:
        tampered = _problem("load_failed", "its code changes the check itself.")
        return _Checked(valid=False, problems=[tampered], fields=[])


def _failed(error: JobError) -> ProblemFound:
    """Report that loading the package failed as a whole: too slow, too large, or not allowed."""
    if error.category is Category.INTERNAL_ERROR:
        raise Unavailable("The draft could not be checked; try again.")
    details = error.details
    file, line = details.get("file"), details.get("line")
    return _problem(
        "load_failed",
        f"loading the package failed: {error.message}",
        str(file).removeprefix(f"{FOLDER}/") if file else "",
        line if isinstance(line, int) else None,
    )


def _problem(code: str, message: str, file: str = "", line: int | None = None) -> ProblemFound:
    return {
        "code": code,
        "severity": "error",
        "message": message,
        "file": file,
        "line": line,
        "hint": "",
    }


def _not_yet(problem: ProblemFound) -> ProblemFound:
    """Turn a missing module into a warning, while nothing is installed yet."""
    if problem["code"] != MISSING:
        return problem
    return {**problem, "severity": "warning", "hint": NOT_YET}

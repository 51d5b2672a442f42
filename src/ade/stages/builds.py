"""Make what a run or an activation needs: the version, its build, and the job that does the work.

It happens in the transaction that accepts the submission, after its admission: a submission that is
refused leaves no version, no build and no job. A build takes no place in the queue, so
that a run fits into a queue of one.

    what is found                  for a run                        for an activation
    -----------------------------  -------------------------------  ------------------------------
    no build, nothing to do        ready at once, without a job     a job that loads the package
    no build, something to do      a job; the run waits             a job
    queued or building             the run waits                    joined
    ready                          the run is eligible              active at once, if a job made it
    failed by the configuration    the run fails for that reason    a new job
    failed by ADE, or cancelled    a new job; the run waits         a new job
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ade.domain.build import BuildStatus, is_remembered
from ade.domain.limits import Limits
from ade.store.port import LostRace, Transaction
from ade.store.rows import Activation, Build, JobRef, JobRow, Version


class RequiredBuild(NamedTuple):
    """Name the version that a submission depends on, and how its build is made.

    `version` has no sequence yet if the draft it was read from has none. `has_work` is False if
    there is nothing to install and no hook to run. `limits` and `retries` are those of the job.
    """

    version: Version
    fingerprint: str
    limits: Limits
    retries: int
    has_work: bool
    # Whether a build that failed is made again.
    rebuild: bool = False
    # Whether the version becomes the active one when its build is ready.
    activate: bool = False


class EnsuredBuild(NamedTuple):
    """Hold a build that exists now; `new_job` names the job that must be inserted for it."""

    version: Version
    build: Build
    new_job: str | None = None


def ensure(
    tx: Transaction, required: RequiredBuild, build_id: str, job_id: str, by: str
) -> EnsuredBuild:
    """Find or make the version and the build of a submission; the ids are for what is new."""
    version = required.version
    if not version.sequence:
        version = tx.catalogue.ensure_version(version)
    # Two processes that both upgraded a shared lock would deadlock, so what is about to be changed
    # is locked for a change at once.
    seen = tx.builds.find_of(version, required.fingerprint)
    is_made_again = seen is not None and _is_made_again(tx, seen, required)
    build = tx.builds.lock_of(version, required.fingerprint, for_change=is_made_again)
    if build is None:
        ensured = _insert(tx, required, version, build_id, job_id)
    elif _is_made_again(tx, build, required):
        if not is_made_again:
            raise LostRace("a build ended in another transaction")
        ensured = _queue_again(tx, version, build, job_id)
    else:
        ensured = EnsuredBuild(version, build)
    if required.activate:
        _activate(tx, ensured, by)
    return ensured


def _insert(
    tx: Transaction, required: RequiredBuild, version: Version, build_id: str, job_id: str
) -> EnsuredBuild:
    has_job = required.has_work or required.activate
    build = Build(
        workspace_id=version.workspace_id,
        id=build_id,
        configuration_id=version.configuration_id,
        fingerprint=required.fingerprint,
        status=(BuildStatus.QUEUED if has_job else BuildStatus.READY).value,
        error=None,
        created_at=tx.now_us,
        started_at=None,
        finished_at=None if has_job else tx.now_us,
        version_id=version.id,
        environment=None,
        job_id=job_id if has_job else None,
    )
    tx.builds.insert(build)
    return EnsuredBuild(version, build, build.job_id)


def _queue_again(tx: Transaction, version: Version, build: Build, job_id: str) -> EnsuredBuild:
    if not tx.builds.queue(build, job_id, version.id):
        raise LostRace("a build was changed by another transaction")
    unknown: dict[str, Any] = dict.fromkeys(("error", "environment", "started_at", "finished_at"))
    queued = build._replace(
        status=BuildStatus.QUEUED.value,
        version_id=version.id,
        job_id=job_id,
        attempt=0,
        **unknown,
    )
    return EnsuredBuild(version, queued, job_id)


def _is_made_again(tx: Transaction, build: Build, required: RequiredBuild) -> bool:
    if build.status == BuildStatus.READY:
        # An activation promises that the package can be loaded: only a job has seen that.
        return required.activate and job_of(tx, build) is None
    if build.status == BuildStatus.FAILED:
        return required.rebuild or required.activate or not is_remembered(build.error)
    return build.status == BuildStatus.CANCELLED


def job_of(tx: Transaction, build: Build) -> JobRow | None:
    """Read the job that makes a build, or made it; None if there was none or it was deleted."""
    return tx.read_job(JobRef(build.workspace_id, build.job_id)) if build.job_id else None


def _activate(tx: Transaction, ensured: EnsuredBuild, by: str) -> None:
    """Make the version the active one, at once or when its build is ready."""
    version, build = ensured.version, ensured.build
    named = version.workspace_id, version.configuration_id
    known = tx.builds.activation(*named) or Activation(*named)
    if build.status == BuildStatus.READY:
        active = Activation(*named, version.id, tx.now_us, by)
        if known.version_id == version.id:  # it is active already, since then and by them
            active = known._replace(pending_version_id=None, pending_by=None)
    else:
        active = known._replace(pending_version_id=version.id, pending_by=by)
    tx.builds.put_activation(active)


class SettledBuilds:
    """Tell the builds that runs can start in from those that cannot be used."""

    def __init__(self, builds: list[Build]) -> None:
        self._ready = {build.id for build in builds if build.status == BuildStatus.READY}
        self.unusable = [build for build in builds if build.id not in self._ready]

    def lets_start(self, build_id: str | None) -> bool:
        """Tell whether a job does not have to wait for its build."""
        return build_id is None or build_id in self._ready


def settled_builds(tx: Transaction, builds: Iterable[tuple[str, str | None]]) -> SettledBuilds:
    """Find which builds are settled, so that no run waits for them."""
    refs = {JobRef(workspace_id, id_) for workspace_id, id_ in builds if id_ is not None}
    return SettledBuilds(tx.builds.settled(list(refs)) if refs else [])

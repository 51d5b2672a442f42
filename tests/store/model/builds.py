"""Versions, builds and active versions of the reference model, on dictionaries."""

from collections.abc import Sequence

from tests.store.model.invariants import ImpossibleRow
from tests.store.model.tables import Tables

from ade.domain.build import SETTLED, BuildStatus
from ade.domain.ids import uuid7
from ade.domain.job import Status
from ade.store.rows import Activation, Build, JobRef, Version


class MemoryVersions:
    """Change the versions of configurations."""

    def __init__(self, tables: Tables, now_us: int) -> None:
        self._tables = tables
        self._now_us = now_us

    def ensure_version(self, version: Version) -> Version:
        """Insert a version that was read from a draft, unless an equal one exists."""
        named = version.workspace_id, version.configuration_id
        versions = self._tables.versions
        same = [
            one for one in versions.values() if (one.workspace_id, one.configuration_id) == named
        ]
        for known in same:
            if known.digest == version.digest:
                return known
        new = version._replace(
            id=uuid7(self._now_us, len(versions) + 1),
            sequence=max((one.sequence for one in same), default=0) + 1,
            created_at=self._now_us,
        )
        versions[JobRef(new.workspace_id, new.id)] = new
        return new


class MemoryBuilds:
    """Read and change builds and active versions."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def settled(self, refs: Sequence[JobRef]) -> list[Build]:
        """Find which of these builds are settled."""
        found = [self._tables.builds[ref] for ref in refs if ref in self._tables.builds]
        return [self._with_job(build) for build in found if build.status in SETTLED]

    def lock_of(
        self, version: Version, fingerprint: str, *, for_change: bool = False
    ) -> Build | None:
        """Find the build of a fingerprint."""
        return self.find_of(version, fingerprint)

    def find_of(self, version: Version, fingerprint: str) -> Build | None:
        """Find the build of a fingerprint."""
        named = version.workspace_id, version.configuration_id, fingerprint
        for build in self._tables.builds.values():
            if (build.workspace_id, build.configuration_id, build.fingerprint) == named:
                return self._with_job(build)
        return None

    def of_jobs(self, refs: Sequence[JobRef]) -> list[Build]:
        """Find the builds that these jobs do the work of, and that are not settled."""
        return [
            self._with_job(build)
            for build in self._tables.builds.values()
            if build.status not in SETTLED and JobRef(build.workspace_id, str(build.job_id)) in refs
        ]

    def insert(self, build: Build) -> None:
        """Insert a build."""
        if any(_print(one) == _print(build) for one in self._tables.builds.values()):
            raise ImpossibleRow("uq_builds_configuration_id_fingerprint")
        self._put(build)

    def queue(self, build: Build, job_id: str, version_id: str) -> bool:
        """Give a settled build a job to make it again."""
        known = self._tables.builds[JobRef(build.workspace_id, build.id)]
        if known.status != build.status:
            return False
        cleared = known._replace(error=None, environment=None, started_at=None, finished_at=None)
        queued = cleared._replace(status=BuildStatus.QUEUED.value, job_id=job_id)
        self._put(queued._replace(version_id=version_id))
        return True

    def settle(self, build: Build) -> bool:
        """Record what became of a build."""
        known = self._tables.builds[JobRef(build.workspace_id, build.id)]
        if (known.status, known.job_id) != (BuildStatus.QUEUED, build.job_id):
            return False
        self._put(build)
        return True

    def activation(self, workspace_id: str, configuration_id: str) -> Activation | None:
        """Find which version of a configuration is active, and which one is to become it."""
        return self._tables.activations.get(JobRef(workspace_id, configuration_id))

    def put_activation(self, activation: Activation) -> None:
        """Write which version of a configuration is active, and which one is to become it."""
        self._tables.activations[JobRef(*activation[:2])] = activation

    def _with_job(self, build: Build) -> Build:
        """Return a build with what its job says of it."""
        job = self._tables.jobs.get(JobRef(build.workspace_id, str(build.job_id)))
        if job is None:
            return build
        is_made = build.status == BuildStatus.QUEUED and job.status == Status.RUNNING
        return build._replace(
            status=BuildStatus.BUILDING.value if is_made else build.status,
            started_at=build.started_at or job.started_at,
            attempt=job.fence,
        )

    def _put(self, build: Build) -> None:
        """Write a build, unless it is impossible."""
        is_settled = build.finished_at is not None
        if is_settled != (build.status in SETTLED) or (not is_settled and build.job_id is None):
            raise ImpossibleRow("ck_builds_shape")
        self._tables.builds[JobRef(build.workspace_id, build.id)] = build


def _print(build: Build) -> tuple[str, str]:
    return build.configuration_id, build.fingerprint

"""Builds, one for each `(configuration, fingerprint)`, and which versions are active.

The work of a build is a job; the row says what became of it. Everything that a job's end changes
here happens in the transaction that ends the job.
"""

from collections.abc import Iterable, Mapping, Sequence

from ade.domain.build import SETTLED
from ade.domain.errors import NotFound
from ade.store.catalogue import LAST_ID, require_id
from ade.store.executor import Executor
from ade.store.rows import Activation, Build, BuildVersion, JobRef, Version
from ade.store.sql import builds as statements


class BuildReading:
    """Read builds and active versions."""

    def __init__(self, sql: Executor) -> None:
        self._sql = sql

    def find(self, workspace_id: str, build_id: str) -> Build:
        """Find a build, or raise NotFound."""
        found = self._sql.first("find_build", workspace_id, require_id(build_id, "build"))
        if found is None:
            raise NotFound("There is no such build in this workspace.")
        return Build(*found)

    def find_made_by(self, workspace_id: str, job_id: str) -> Build:
        """Find the build that a job makes, or raise NotFound."""
        found = self._sql.first("find_build_of_job", workspace_id, job_id)
        if found is None:
            raise NotFound("There is no build of this job in this workspace.")
        return Build(*found)

    def find_of(self, version: Version, fingerprint: str) -> Build | None:
        """Find the build of a fingerprint, if there is one."""
        named = version.workspace_id, version.configuration_id, fingerprint
        found = self._sql.first("find_build_of", *named)
        return None if found is None else Build(*found)

    def list_builds(
        self, workspace_id: str, filters: Mapping[str, str], before: str | None, limit: int
    ) -> list[Build]:
        """List builds, newest first, that match all filters and are older than one."""
        names = tuple(sorted(filters))
        values = (workspace_id, before or LAST_ID, *[filters[name] for name in names], limit)
        rows = self._sql.adhoc(
            ("list_builds", names), lambda: statements.list_builds(names), *values
        )
        return [Build(*row) for row in rows]

    def find_some(self, workspace_id: str, build_ids: Iterable[str | None]) -> dict[str, Build]:
        """Find builds by their ids."""
        named = [(workspace_id, id_) for id_ in dict.fromkeys(build_ids) if id_ is not None]
        found = self._sql.each("find_builds", named, Build._make) if named else []
        return {build.id: build for build in found}

    def versions_of(
        self, workspace_id: str, build_ids: Iterable[str | None]
    ) -> dict[str, BuildVersion]:
        """Name the version that each of these builds was made of."""
        named = [(workspace_id, id_) for id_ in dict.fromkeys(build_ids) if id_ is not None]
        found = self._sql.each("versions_of_builds", named, tuple) if named else []
        return {build_id: BuildVersion(*version) for build_id, *version in found}

    def is_needed(self, environment: str) -> bool:
        """Tell whether an unfinished job needs a ready build of an environment."""
        return self._sql.first("needed_builds", environment, 1) is not None

    def environments_in_use(self) -> set[str]:
        """List the environments that ready builds refer to."""
        return {str(row[0]) for row in self._sql.rows("environments_in_use")}

    def activation(self, workspace_id: str, configuration_id: str) -> Activation | None:
        """Find which version of a configuration is active, and which one is to become it."""
        found = self._sql.first("find_activation", workspace_id, configuration_id)
        return None if found is None else Activation(*found)


class BuildChanges(BuildReading):
    """Change builds and active versions."""

    def __init__(self, sql: Executor, now_us: int) -> None:
        super().__init__(sql)
        self._now_us = now_us

    def settled(self, refs: Sequence[JobRef]) -> list[Build]:
        """Find which of these builds are settled; the others stay as they are until the end."""
        found = self._sql.each("read_builds", refs, Build._make)
        return [build for build in found if build.status in SETTLED]

    def lock_of(
        self, version: Version, fingerprint: str, *, for_change: bool = False
    ) -> Build | None:
        """Find the build of a fingerprint and keep others from changing it."""
        named = version.workspace_id, version.configuration_id, fingerprint
        found = self._sql.first("lock_build_of" if for_change else "hold_build_of", *named)
        return None if found is None else Build(*found)

    def of_jobs(self, refs: Sequence[JobRef]) -> list[Build]:
        """Find the builds that these jobs do the work of, and that are not settled."""
        return self._sql.each("builds_of_jobs", refs, Build._make) if refs else []

    def insert(self, build: Build) -> None:
        """Insert a build."""
        self._sql.run("insert_build", *[getattr(build, name) for name in statements.STORED])

    def queue(self, build: Build, job_id: str, version_id: str) -> bool:
        """Give a settled build a job to make it again; tell whether it was still as seen."""
        return self._sql.run("queue_build", *build[:2], build.status, job_id, version_id) == 1

    def settle(self, build: Build) -> bool:
        """Record what became of a build; tell whether it was still for its job to say."""
        outcome = [getattr(build, name) for name in statements.OUTCOME]
        return self._sql.run("settle_build", *build[:2], build.job_id, *outcome) == 1

    def activation(self, workspace_id: str, configuration_id: str) -> Activation | None:
        """Find which version of a configuration is active, and keep others from changing it."""
        found = self._sql.first("lock_activation", workspace_id, configuration_id)
        return None if found is None else Activation(*found)

    def put_activation(self, activation: Activation) -> None:
        """Write which version of a configuration is active, and which one is to become it."""
        if self._sql.run("change_activation", *activation) == 0:
            self._sql.run("insert_activation", *activation)

    def retire_environment(
        self, environment: str, reason: str, *, even_if_needed: bool = False
    ) -> bool:
        """Cancel the ready builds of an environment, unless an unfinished job needs one of them."""
        if not even_if_needed and self.is_needed(environment):
            return False
        self._sql.run("retire_environment", environment, reason, self._now_us)
        return True

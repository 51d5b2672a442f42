"""Builds: one for each `(configuration, fingerprint)`, made by the builder that holds its lease.

A build is found or made under its unique key, so that any number of runs share one, and is claimed
with a fence like a job: a builder that lost its lease changes nothing any more. Builders are woken
when a build waits or was cancelled.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ade.domain.errors import Conflict, NotFound
from ade.store.catalogue import LAST_ID, require_id
from ade.store.executor import Executor, id_at
from ade.store.rows import Build, BuildHeld, JobRef, Version
from ade.store.schema import BUILD_SETTLED
from ade.store.sql import builds as statements

BUILDS_TOPIC = "builds"
# What is made again when somebody asks for it.
AGAIN = ("failed", "cancelled")


class BuildReading:
    """Read builds."""

    def __init__(self, sql: Executor) -> None:
        self._sql = sql

    def find(self, workspace_id: str, build_id: str) -> Build:
        """Find a build, or raise NotFound."""
        return self._found("find_build", workspace_id, build_id)

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

    def settled_with_waiting_runs(self, limit: int) -> list[Build]:
        """Find builds that have ended while runs still wait: their builder died in between."""
        rows = self._sql.rows("settled_builds_with_waiting_runs", limit)
        return [Build(*row) for row in rows]

    def environments_in_use(self) -> set[str]:
        """List the environments that ready builds refer to."""
        return {str(row[0]) for row in self._sql.rows("environments_in_use")}

    def _found(self, name: str, workspace_id: str, build_id: str) -> Build:
        found = self._sql.first(name, workspace_id, require_id(build_id, "build"))
        if found is None:
            raise NotFound("There is no such build in this workspace.")
        return Build(*found)


class BuildChanges(BuildReading):
    """Change builds."""

    def __init__(self, sql: Executor, now_us: int, notify: Callable[[str], None]) -> None:
        super().__init__(sql)
        self._now_us = now_us
        self._notify = notify

    def settled(self, refs: Sequence[JobRef]) -> set[str]:
        """Find which of these builds are terminal; lock the status of the others."""
        found = self._sql.each("read_builds", refs, tuple)
        return {build_id for build_id, status in found if status in BUILD_SETTLED}

    def ensure(self, version: Version, fingerprint: str) -> Build:
        """Find or make the one build of a fingerprint; one that failed is tried again."""
        known = self.find_of(version, fingerprint)
        if known is not None and known.status not in AGAIN:
            return known
        if known is None:
            build = Build(
                version.workspace_id,
                id_at(self._now_us),
                version.configuration_id,
                fingerprint,
                "queued",
                0,
                None,
                None,
                None,
                self._now_us,
                None,
                None,
                version.id,
                None,
                0,
            )
            self._sql.run("insert_build", *[getattr(build, name) for name in statements.NEW])
        else:
            build = known._replace(
                status="queued", finished_at=None, started_at=None, error=None, losses=0
            )
            self._change(known, build)
        self._notify(BUILDS_TOPIC)
        return build

    def claim(self, owner: str, lease_us: int) -> tuple[bool, Build | None]:
        """Take the oldest build that waits, or whose builder lost its lease: that is a loss.

        Return whether there was one, and the build unless somebody else was faster.
        """
        found = self._sql.first("next_build", self._now_us, 1)
        if found is None:
            return False, None
        seen = Build(*found)
        taken = seen._replace(
            status="building",
            fence=seen.fence + 1,
            lease_owner=owner,
            lease_expires_at=self._now_us + lease_us,
            started_at=self._now_us,
            losses=seen.losses + (seen.status == "building"),
        )
        return True, taken if self._change(seen, taken) else None

    def renew(self, held: BuildHeld, lease_us: int) -> bool:
        """Keep a lease; return False if it is lost."""
        return self._change_held(held, lease_expires_at=self._now_us + lease_us)

    def finish(
        self, held: BuildHeld, status: str, *, error: str | None, environment: str | None
    ) -> bool:
        """Record how a build ended; return False if the lease was lost and nothing changed."""
        return self._change_held(
            held,
            status=status,
            error=error,
            environment=environment,
            finished_at=self._now_us,
            lease_owner=None,
            lease_expires_at=None,
        )

    def release(self, held: BuildHeld) -> bool:
        """Put a build back for another builder; return False if the lease was lost."""
        released = self._change_held(
            held, status="queued", started_at=None, lease_owner=None, lease_expires_at=None
        )
        if released:
            self._notify(BUILDS_TOPIC)
        return released

    def cancel(self, workspace_id: str, build_id: str) -> Build:
        """Cancel a build that has not ended; its builder finds its lease lost."""
        build = self._found("lock_build", workspace_id, build_id)
        if build.status in BUILD_SETTLED:
            raise Conflict(f"A build that is {build.status} cannot be cancelled.")
        cancelled = build._replace(
            status="cancelled",
            finished_at=self._now_us,
            fence=build.fence + 1,
            lease_owner=None,
            lease_expires_at=None,
        )
        if not self._change(build, cancelled):
            raise Conflict("The build was changed meanwhile; try again.")
        self._notify(BUILDS_TOPIC)
        return cancelled

    def retire_environment(
        self, environment: str, reason: str, *, even_if_needed: bool = False
    ) -> bool:
        """Cancel the ready builds of an environment, unless an unfinished job needs one of them."""
        if not even_if_needed and self._sql.first("needed_builds", environment, 1) is not None:
            return False
        self._sql.run("retire_environment", environment, reason, self._now_us)
        return True

    def _change_held(self, held: BuildHeld, **values: Any) -> bool:
        found = self._sql.first("lock_build", held.workspace_id, held.id)
        if found is None:
            return False
        seen = Build(*found)._replace(status="building", fence=held.fence)
        return self._change(seen, seen._replace(**values))

    def _change(self, seen: Build, after: Build) -> bool:
        """Change a build that still has the status and fence that were seen; tell if it had."""
        precondition = seen.workspace_id, seen.id, seen.fence, seen.status
        written = [getattr(after, name) for name in statements.WRITTEN]
        return self._sql.run("change_build", *precondition, after.fence, *written) == 1

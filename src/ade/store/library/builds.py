"""Builds: one for each `(configuration, fingerprint)`, made by whoever holds its lease.

A build is found or made under its unique key, so that any number of runs share one, and is claimed
with a fence like a job: whoever loses its lease changes nothing any more. Builders in other
processes hear at once, where the database tells (`ade.store.hints`), of a build that waits or was
cancelled.
"""

from typing import Any, NamedTuple

from sqlalchemy import and_, exists, insert, or_, select, update
from sqlalchemy.sql.elements import ColumnElement

from ade.clock import new_id
from ade.domain.errors import Conflict, NotFound
from ade.store.desk import Desk
from ade.store.library.keys import key
from ade.store.library.versions import Version
from ade.store.schema import BUILD_SETTLED, builds, is_held, jobs, requests
from ade.store.statements import Statement
from ade.store.statements.parts import same_row

BUILDS_TOPIC = "builds"
CLAIM_LOOKS = 5
AGAIN = ("failed", "cancelled")
FIND = Statement(
    lambda d, g: select(builds).where(
        builds.c.workspace_id == g["workspace_id"], builds.c.id == g["id"]
    ),
    ("workspace_id", "id"),
    many=False,
)
FIND_BY_PRINT = Statement(
    lambda d, g: select(builds).where(
        builds.c.workspace_id == g["workspace_id"],
        builds.c.configuration_id == g["configuration_id"],
        builds.c.fingerprint == g["fingerprint"],
    ),
    ("workspace_id", "configuration_id", "fingerprint"),
    many=False,
)


class Build(NamedTuple):
    """Hold a prepared environment, or the wish for one."""

    workspace_id: str
    id: str
    configuration_id: str
    fingerprint: str
    status: str
    fence: int
    lease_owner: str | None
    lease_expires_at: int | None
    error: str | None
    created_at: int
    started_at: int | None
    finished_at: int | None
    version_id: str | None
    environment: str | None
    losses: int


class BuildHeld(NamedTuple):
    """Name a build and the fence under which someone holds it."""

    workspace_id: str
    id: str
    fence: int


class Builds(Desk):
    """Read and change builds."""

    async def ensure_build(self, version: Version, fingerprint: str) -> Build:
        """Find or make the one build of a fingerprint; one that failed is tried again."""
        known = await self.find_build_of(version, fingerprint)
        if known is not None and known.status not in AGAIN:
            return known  # a thousand runs of one version read, and one of them writes
        return await self._run(lambda: self._ensure_build(version, fingerprint))

    def _ensure_build(self, version: Version, fingerprint: str) -> Build:
        same = and_(
            builds.c.configuration_id == version.configuration_id,
            builds.c.fingerprint == fingerprint,
        )
        found = self._first(select(builds).where(same))
        if found is None:
            new = Build(
                version.workspace_id,
                new_id(self._clock),
                version.configuration_id,
                fingerprint,
                "queued",
                0,
                None,
                None,
                None,
                self._clock.now_us(),
                None,
                None,
                version.id,
                None,
                0,
            )
            self._do(insert(builds).values(new._asdict()))
            self._tell_builders()
            return new
        build = Build(*found)
        if build.status in AGAIN:
            anew = build._replace(
                status="queued", finished_at=None, started_at=None, error=None, losses=0
            )
            changed = _changed(build, anew)
            self._do(update(builds).where(same, _is_now(build)).values(**changed))
            self._tell_builders()
            build = anew
        return build

    async def find_build(self, workspace_id: str, build_id: str) -> Build:
        """Find a build, or raise NotFound."""
        id_ = key(build_id, "build")
        found = await self._run(lambda: self._first_known(FIND, workspace_id, id_), write=False)
        if found is None:
            raise NotFound("There is no such build in this workspace.")
        return Build(*found)

    async def find_build_of(self, version: Version, fingerprint: str) -> Build | None:
        """Find the build of a fingerprint, if there is one."""
        return await self._run(lambda: self._build_of(version, fingerprint), write=False)

    def _build_of(self, version: Version, fingerprint: str) -> Build | None:
        named = version.workspace_id, version.configuration_id, fingerprint
        found = self._first_known(FIND_BY_PRINT, *named)
        return None if found is None else Build(*found)

    async def list_builds(
        self,
        workspace_id: str,
        *,
        configuration_id: str | None = None,
        status: str | None = None,
        before: str | None,
        limit: int,
    ) -> list[Build]:
        """List builds, newest first, from one on."""
        wanted = select(builds).where(builds.c.workspace_id == workspace_id)
        if configuration_id is not None:
            wanted = wanted.where(builds.c.configuration_id == configuration_id)
        if status is not None:
            wanted = wanted.where(builds.c.status == status)
        if before is not None:
            wanted = wanted.where(builds.c.id < before)
        wanted = wanted.order_by(builds.c.id.desc()).limit(limit)
        return [Build(*row) for row in await self._run(lambda: self._rows(wanted), write=False)]

    async def claim_build(self, owner: str, lease_us: int) -> Build | None:
        """Take the oldest build that waits, or whose holder has fallen silent: that is a loss."""
        for _ in range(CLAIM_LOOKS):  # each is a transaction: another may have been faster
            free, taken = await self._run(lambda: self._claim_build(owner, lease_us))
            if taken is not None or not free:
                return taken
        return None

    def _claim_build(self, owner: str, lease_us: int) -> tuple[bool, Build | None]:
        now = self._clock.now_us()
        free = or_(
            builds.c.status == "queued",
            and_(builds.c.status == "building", builds.c.lease_expires_at < now),
        )
        found = self._first(select(builds).where(free).order_by(builds.c.created_at).limit(1))
        if found is None:
            return False, None
        seen = Build(*found)
        taken = seen._replace(
            status="building",
            fence=seen.fence + 1,
            lease_owner=owner,
            lease_expires_at=now + lease_us,
            started_at=now,
            losses=seen.losses + (seen.status == "building"),
        )
        still = _of_build(seen), _is_now(seen), free  # its holder may have renewed meanwhile
        self._do(update(builds).where(*still).values(**_changed(seen, taken)))
        return True, taken if self._cursor.rowcount == 1 else None

    async def renew_build(self, held: BuildHeld, lease_us: int) -> bool:
        """Keep a lease; False says that it is lost."""
        return await self._change_build(held, {"lease_expires_at": self._clock.now_us() + lease_us})

    async def finish_build(
        self, held: BuildHeld, status: str, *, error: str | None, environment: str | None
    ) -> bool:
        """Record how a build ended; False says that the lease was lost and nothing changed."""
        ended = {
            "status": status,
            "error": error,
            "environment": environment,
            "finished_at": self._clock.now_us(),
            "lease_owner": None,
            "lease_expires_at": None,
        }
        return await self._change_build(held, ended)

    async def release_build(self, held: BuildHeld) -> bool:
        """Put a build back for another builder; False says that the lease was lost."""
        back = {
            "status": "queued",
            "started_at": None,
            "lease_owner": None,
            "lease_expires_at": None,
        }
        return await self._change_build(held, back, told=True)

    async def cancel_build(self, workspace_id: str, build_id: str) -> Build:
        """Cancel a build that has not ended; whoever holds it finds its lease lost."""
        build = await self.find_build(workspace_id, build_id)
        if build.status in BUILD_SETTLED:
            raise Conflict(f"A build that is {build.status} cannot be cancelled.")
        ended = {
            "status": "cancelled",
            "finished_at": self._clock.now_us(),
            "fence": build.fence + 1,
            "lease_owner": None,
            "lease_expires_at": None,
        }

        def cancel() -> None:
            self._do(update(builds).where(_of_build(build), _is_now(build)).values(**ended))
            self._tell_builders()

        await self._run(cancel)
        build = await self.find_build(workspace_id, build_id)
        if build.status != "cancelled":
            raise Conflict(f"The build has moved on meanwhile: it is {build.status}.")
        return build

    def _tell_builders(self) -> None:
        """Wake builders in other processes when this transaction has committed."""
        self._dialect.notify(self._cursor, [BUILDS_TOPIC])

    async def _change_build(
        self, held: BuildHeld, values: dict[str, Any], *, told: bool = False
    ) -> bool:
        mine = and_(
            builds.c.workspace_id == held.workspace_id,
            builds.c.id == held.id,
            builds.c.fence == held.fence,
            builds.c.status == "building",
        )

        def change() -> bool:
            self._do(update(builds).where(mine).values(**values))
            changed = bool(self._cursor.rowcount == 1)
            if changed and told:
                self._tell_builders()
            return changed

        return await self._run(change)

    async def settled_with_waiting_runs(self, limit: int) -> list[Build]:
        """Find builds that have ended while runs still wait: who ended them died in between."""
        waiting = (
            select(builds)
            .select_from(
                builds.join(
                    requests,
                    and_(
                        requests.c.workspace_id == builds.c.workspace_id,
                        requests.c.build_id == builds.c.id,
                    ),
                ).join(jobs, same_row())
            )
            .where(builds.c.status.in_(BUILD_SETTLED), is_held(jobs), jobs.c.not_before.is_(None))
            .distinct()
            .limit(limit)
        )
        return [Build(*row) for row in await self._run(lambda: self._rows(waiting), write=False)]

    async def environments_in_use(self) -> set[str]:
        """Name the environments that ready builds refer to."""
        wanted = select(builds.c.environment).where(
            builds.c.environment.is_not(None), builds.c.status == "ready"
        )
        rows = await self._run(lambda: self._rows(wanted.distinct()), write=False)
        return {str(row[0]) for row in rows}

    async def retire_environment(
        self, environment: str, reason: str, *, even_if_needed: bool = False
    ) -> bool:
        """Take an environment's builds back, unless a job that has not ended needs one of them.

        They count as cancelled: the next run of their versions builds again.
        """
        return await self._run(
            lambda: self._retire_environment(environment, reason, even_if_needed=even_if_needed)
        )

    def _retire_environment(self, environment: str, reason: str, *, even_if_needed: bool) -> bool:
        ready = and_(builds.c.environment == environment, builds.c.status == "ready")
        needed = exists().where(
            requests.c.workspace_id == builds.c.workspace_id,
            requests.c.build_id == builds.c.id,
            jobs.c.workspace_id == requests.c.workspace_id,
            jobs.c.id == requests.c.id,
            jobs.c.finished_at.is_(None),
        )
        live = select(builds.c.id).where(ready, needed).limit(1)
        if not even_if_needed and self._first(live) is not None:
            return False
        now = self._clock.now_us()
        self._do(
            update(builds)
            .where(ready)
            .values(status="cancelled", error=reason, environment=None, finished_at=now)
        )
        return True


def _changed(before: Build, after: Build) -> dict[str, Any]:
    """Name the columns in which two states of a build differ, with their new values."""
    old, new = before._asdict(), after._asdict()
    return {name: value for name, value in new.items() if value != old[name]}


def _of_build(build: Build) -> ColumnElement[bool]:
    return and_(builds.c.workspace_id == build.workspace_id, builds.c.id == build.id)


def _is_now(build: Build) -> ColumnElement[bool]:
    """Match a build that is still as it was seen."""
    return and_(builds.c.status == build.status, builds.c.fence == build.fence)

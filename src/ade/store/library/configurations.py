"""Configurations: rules and code under a name."""

from typing import NamedTuple

from sqlalchemy import func, insert, select, update

from ade.clock import new_id
from ade.domain.errors import Conflict, NotFound
from ade.store.library.holdings import Holdings
from ade.store.library.keys import key
from ade.store.schema import configurations
from ade.store.statements import Statement

CONFIGURATIONS_MAX = 10_000
FIND = Statement(
    lambda d, g: select(configurations).where(
        configurations.c.workspace_id == g["workspace_id"],
        configurations.c.id == g["id"],
        configurations.c.deleted_at.is_(None),
    ),
    ("workspace_id", "id"),
    many=False,
)


class Configuration(NamedTuple):
    """Hold a configuration."""

    workspace_id: str
    id: str
    name: str
    created_at: int
    deleted_at: int | None


class Configurations(Holdings):
    """Read and change configurations."""

    async def find_configuration(self, workspace_id: str, configuration_id: str) -> Configuration:
        """Find a configuration that was not deleted, or raise NotFound."""
        return await self._run(
            lambda: self._configuration(workspace_id, configuration_id), write=False
        )

    def _configuration(self, workspace_id: str, configuration_id: str) -> Configuration:
        found = self._first_known(FIND, workspace_id, key(configuration_id, "configuration"))
        if found is None:
            raise NotFound("There is no such configuration in this workspace.")
        return Configuration(*found)

    def _insert_configuration(self, workspace_id: str, name: str) -> Configuration:
        here = configurations.c.workspace_id == workspace_id
        alive = select(func.count()).where(here, configurations.c.deleted_at.is_(None))
        if self._rows(alive)[0][0] >= CONFIGURATIONS_MAX:
            raise Conflict(f"A workspace has at most {CONFIGURATIONS_MAX} configurations.")
        now = self._clock.now_us()
        new = Configuration(workspace_id, new_id(self._clock), name, now, None)
        self._do(insert(configurations).values(new._asdict()))
        return new

    async def list_configurations(
        self, workspace_id: str, *, before: str | None, limit: int
    ) -> list[Configuration]:
        """List configurations, newest first, from one on."""
        wanted = select(configurations).where(
            configurations.c.workspace_id == workspace_id, configurations.c.deleted_at.is_(None)
        )
        if before is not None:
            wanted = wanted.where(configurations.c.id < before)
        wanted = wanted.order_by(configurations.c.id.desc()).limit(limit)
        rows = await self._run(lambda: self._rows(wanted), write=False)
        return [Configuration(*row) for row in rows]

    async def delete_configuration(self, workspace_id: str, configuration_id: str) -> None:
        """Put a configuration out of sight; its versions stay for the runs that name them."""
        await self._run(lambda: self._delete_configuration(workspace_id, configuration_id))

    def _delete_configuration(self, workspace_id: str, configuration_id: str) -> None:
        found = self._configuration(workspace_id, configuration_id)
        same = configurations.c.workspace_id == workspace_id, configurations.c.id == found.id
        self._do(update(configurations).where(*same).values(deleted_at=self._clock.now_us()))

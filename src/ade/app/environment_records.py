"""Which environments builds refer to, and which blobs hold them, as calls."""

from collections.abc import Collection

from ade.store.rows import EnvironmentArchive
from ade.store.session import Session
from ade.store.transaction import SqlTransaction


class EnvironmentRecords:
    """Read and change what is known of environments: folders of installed packages."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def find(self, environment: str) -> EnvironmentArchive | None:
        """Find the archive of an environment."""
        return await self._session.aread(
            lambda reading: reading.environment_archives.find(environment)
        )

    async def in_use(self) -> set[str]:
        """List the environments that ready builds refer to."""
        return await self._session.aread(lambda reading: reading.builds.environments_in_use())

    async def retire(self, environment: str, reason: str, *, even_if_needed: bool = False) -> bool:
        """Cancel the ready builds of an environment, unless an unfinished job needs one of them.

        The next run of their versions builds again.
        """
        return await self._session.achange(
            lambda tx: tx.builds.retire_environment(
                environment, reason, even_if_needed=even_if_needed
            )
        )

    async def is_needed(self, environment: str) -> bool:
        """Tell whether an unfinished job needs an environment."""
        return await self._session.aread(lambda reading: reading.builds.is_needed(environment))

    async def archived(self) -> set[str]:
        """List the environments that have an archive."""
        return await self._session.aread(
            lambda reading: reading.environment_archives.environments()
        )

    async def add(self, archive: EnvironmentArchive) -> EnvironmentArchive:
        """Record an archive, unless the environment has one; return the one that counts."""
        return await self._session.achange(
            lambda tx: tx.environment_archives.add(archive),
            lambda reading, added: (
                reading.environment_archives.find(archive.environment) is not None
            ),
        )

    async def forget(self, environment: str) -> None:
        """Forget an archive whose bytes are gone."""
        await self._session.achange(
            lambda tx: tx.environment_archives.forget(environment), lambda reading, _: True
        )

    async def use(self, environments: Collection[str]) -> None:
        """Record that environments are used."""
        if environments:
            await self._session.achange(
                lambda tx: tx.environment_archives.use(environments), lambda reading, _: True
            )

    async def retire_unused(self, seconds: float, reason: str) -> int:
        """Forget what no host has used for so long, and cancel the ready builds of it.

        An environment that an unfinished job needs stays. Return how many were forgotten.
        """
        unused = await self._session.achange(
            lambda tx: tx.environment_archives.unused(seconds), lambda reading, _: True
        )
        retired = 0
        for environment in unused:
            retired += await self._session.achange(
                lambda tx, name=environment: _retire(tx, name, seconds, reason)  # type: ignore[misc]
            )
        return retired


def _retire(tx: SqlTransaction, environment: str, seconds: float, reason: str) -> bool:
    if not tx.builds.retire_environment(environment, reason):
        return False
    return tx.environment_archives.forget(environment, seconds)

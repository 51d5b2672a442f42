"""The archives of environments: which blob holds what one host installed, for the others."""

from collections.abc import Iterable

from ade.domain.units import MICROSECONDS
from ade.store.executor import Executor
from ade.store.rows import EnvironmentArchive

# A use is recorded at most this often: it is compared with days.
USE_RECORDED_SECONDS = 3600
UNUSED_AT_ONCE = 100


class EnvironmentArchiveReading:
    """Read the archives of environments."""

    def __init__(self, sql: Executor) -> None:
        self._sql = sql

    def find(self, environment: str) -> EnvironmentArchive | None:
        """Find the archive of an environment."""
        found = self._sql.first("find_environment_archive", environment)
        return None if found is None else EnvironmentArchive._make(found)

    def environments(self) -> set[str]:
        """List the environments that have an archive."""
        return {str(row[0]) for row in self._sql.rows("archived_environments")}


class EnvironmentArchiveChanges(EnvironmentArchiveReading):
    """Change the archives of environments."""

    def __init__(self, sql: Executor, now_us: int) -> None:
        super().__init__(sql)
        self._now_us = now_us

    def add(self, archive: EnvironmentArchive) -> EnvironmentArchive:
        """Record an archive, unless the environment has one; return the one that counts."""
        known = self.find(archive.environment)
        if known is not None:
            return known
        added = archive._replace(created_at=self._now_us, used_at=self._now_us)
        self._sql.run("insert_environment_archive", *added)
        return added

    def use(self, environments: Iterable[str]) -> None:
        """Record that environments are used, each at most once an hour."""
        recorded_before = self._now_us - USE_RECORDED_SECONDS * MICROSECONDS
        for environment in sorted(environments):
            self._sql.run("use_environment_archive", environment, recorded_before, self._now_us)

    def unused(self, seconds: float) -> list[str]:
        """List environments that no host has used for so long, at most UNUSED_AT_ONCE."""
        found = self._sql.rows("unused_archives", self._before(seconds), UNUSED_AT_ONCE)
        return [str(row[0]) for row in found]

    def forget(self, environment: str, seconds: float = -1) -> bool:
        """Forget an archive that no host has used for so long; its blob is collected later."""
        return self._sql.run("delete_environment_archive", environment, self._before(seconds)) > 0

    def _before(self, seconds: float) -> int:
        return self._now_us - int(seconds * MICROSECONDS)

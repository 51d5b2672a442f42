"""The job types of this installation."""

from collections.abc import Collection
from importlib.metadata import entry_points

from ade.domain.errors import InvalidRequest
from ade.kinds.kind import Kind

GROUP = "ade.kinds"


class Kinds:
    """Find job types by name."""

    def __init__(self, kinds: list[Kind]) -> None:
        self._kinds = {kind.name: kind for kind in kinds}

    def named(self, name: str) -> Kind:
        """Return a job type, or say which there are."""
        kind = self._kinds.get(name)
        if kind is None:
            known = ", ".join(sorted(self._kinds))
            raise InvalidRequest(
                f"There is no job_type {name[:63]!r} here; known are: {known}.",
                errors=[{"field": "job_type", "known": sorted(self._kinds)}],
            )
        return kind

    def only(self, names: Collection[str]) -> "Kinds":
        """Return some of them; raises InvalidRequest for a name that is not known."""
        return Kinds([self.named(name) for name in names])

    def in_pool(self, pool: str) -> "Kinds":
        """Return those that the workers of a pool run."""
        return Kinds([kind for kind in self._kinds.values() if kind.pool == pool])

    def names(self) -> list[str]:
        """Return the names of all job types."""
        return sorted(self._kinds)


def load_kinds() -> Kinds:
    """Load the job types of installed packages, ADE's own among them; one name, one type."""
    kinds: dict[str, Kind] = {}
    for point in entry_points(group=GROUP):
        kind = point.load()()
        if kind.name in kinds:
            raise RuntimeError(f"{point.value} offers job_type {kind.name!r}, which exists already")
        kinds[kind.name] = kind
    return Kinds(list(kinds.values()))

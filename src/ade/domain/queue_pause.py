"""What an operator keeps from starting: jobs of a workspace or a kind, or what a worker takes."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PauseScope:
    """Name which jobs a pause is for; None stands for all workspaces, kinds or workers."""

    workspace_id: str | None = None
    kind: str | None = None
    # A worker that drains; the other two are None then.
    worker: str | None = None

    @property
    def key(self) -> str:
        """Return the key of this scope: each scope is paused at most once."""
        if self.worker is not None:
            return f"worker:{self.worker}"
        return f"{self.workspace_id or '*'}/{self.kind or '*'}"

    def covers(self, workspace_id: str, kind: str) -> bool:
        """Tell whether a job does not start because of this, whoever would run it."""
        if self.worker is not None:
            return False
        return self.workspace_id in (None, workspace_id) and self.kind in (None, kind)


EVERYTHING = PauseScope()


def paused_kinds(scopes: Collection[PauseScope], workspace_id: str) -> frozenset[str]:
    """Return which kinds may not start in a workspace that is not paused as a whole."""
    there = (scope.kind for scope in scopes if scope.workspace_id in (None, workspace_id))
    return frozenset(kind for kind in there if kind is not None)

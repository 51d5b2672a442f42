"""What an operator keeps from starting: the jobs of a workspace, of a kind, or of both."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PauseScope:
    """Name which jobs a pause is for; None stands for all workspaces, or for all kinds."""

    workspace_id: str | None = None
    kind: str | None = None

    @property
    def key(self) -> str:
        """Return the key of this scope: each scope is paused at most once."""
        return f"{self.workspace_id or '*'}/{self.kind or '*'}"

    def covers(self, workspace_id: str, kind: str) -> bool:
        """Tell whether a pause of this scope is for a job."""
        return self.workspace_id in (None, workspace_id) and self.kind in (None, kind)


def paused_kinds(scopes: Collection[PauseScope], workspace_id: str) -> frozenset[str]:
    """Return which kinds may not start in a workspace that is not paused as a whole."""
    there = (scope.kind for scope in scopes if scope.workspace_id in (None, workspace_id))
    return frozenset(kind for kind in there if kind is not None)

"""Workspaces, keys and the caller."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ade.client.answers.decode import Answer, listed, named, time


@dataclass(frozen=True)
class Workspace(Answer):
    """A tenant, and the caller's role in it."""

    id: str = named("workspace_id", "")
    slug: str = ""
    name: str = ""
    role: str = ""
    created_at: datetime | None = time()


@dataclass(frozen=True)
class Key(Answer):
    """What may be known of a key; `secret` is set in the only answer that shows it."""

    id: str = named("key_id", "")
    label: str = ""
    role: str | None = None
    user_id: str = ""
    user_name: str = ""
    created_at: datetime | None = time()
    revoked_at: datetime | None = time()
    secret: str | None = named("key")

    def __repr__(self) -> str:
        """Leave the secret out."""
        return f"Key(id={self.id!r}, label={self.label!r}, role={self.role!r})"


@dataclass(frozen=True)
class Caller(Answer):
    """Whose key it is, and the workspaces that it may see."""

    user: Mapping[str, Any] = field(default_factory=dict)
    workspaces: tuple[Workspace, ...] = listed(Workspace)
    key_id: str = ""

    @property
    def name(self) -> str:
        """Return the name of the user."""
        return str(self.user.get("name", ""))

    @property
    def is_operator(self) -> bool:
        """Tell whether the key may do what operators may."""
        return bool(self.user.get("operator"))


@dataclass(frozen=True)
class Health(Answer):
    """How the server is."""

    status: str = ""
    components: tuple[Mapping[str, Any], ...] = ()

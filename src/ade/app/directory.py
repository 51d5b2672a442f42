"""The directory as calls: workspaces, users, members and API keys.

Each call is one read or one change of the session, with the same rules as those of the catalogue.
"""

from ade.app.agents import Agents
from ade.app.user_sessions import UserSessions
from ade.domain.session_rule import SessionRule
from ade.store.rows import ApiKey, KeyHolder, Member, NewKey, Workspace
from ade.store.session import Session


class Directory:
    """Read and change who may use ADE."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def bootstrap(self, given_key: str | None = None) -> str | None:
        """Make workspace `default`, user `admin` and the first key; return a key that was made up.

        A given key is added whenever it is unknown, also later; one that was revoked stays revoked.
        It is not returned: the operator knows it, and it must not appear in a log.
        Two servers that start at once meet at the workspace's unique slug: one makes everything.
        """
        made = self._session.change(
            lambda tx: tx.directory.bootstrap(given_key),
            lambda reading, secret: secret is None or reading.directory.has_key(secret),
        )
        return None if given_key else made

    def has_keys(self) -> bool:
        """Tell whether there is any API key."""
        return self._session.read(lambda reading: reading.directory.has_keys())

    async def find_key(self, digest: str) -> KeyHolder | None:
        """Find the user that a key authenticates, if the key is valid."""
        return await self._session.aread(lambda reading: reading.directory.find_key_holder(digest))

    async def find_workspace(self, name: str) -> Workspace | None:
        """Find a workspace by slug or id."""
        return await self._session.aread(lambda reading: reading.directory.find_workspace(name))

    async def list_workspaces(self) -> list[Workspace]:
        """List all workspaces by slug."""
        return await self._session.aread(lambda reading: reading.directory.list_workspaces())

    async def add_workspace(self, slug: str, name: str) -> Workspace:
        """Make a workspace, or raise Conflict if the slug is taken."""
        return await self._session.achange(
            lambda tx: tx.directory.add_workspace(slug, name),
            lambda reading, new: reading.directory.find_workspace(new.id) == new,
        )

    async def list_members(self, workspace_id: str) -> list[Member]:
        """List the members of a workspace by name."""
        return await self._session.aread(
            lambda reading: reading.directory.list_members(workspace_id)
        )

    async def set_member(self, workspace_id: str, name: str, role: str) -> Member:
        """Give a user a role in a workspace; an unknown name becomes a user."""
        return await self._session.achange(
            lambda tx: tx.directory.set_member(workspace_id, name, role),
            lambda reading, member: (
                reading.directory.find_member(workspace_id, member.user_id) == member
            ),
        )

    async def remove_member(self, workspace_id: str, user_id: str) -> None:
        """Take a user's role in a workspace, and with it what the user's keys allow there."""
        await self._session.achange(
            lambda tx: tx.directory.remove_member(workspace_id, user_id),
            lambda reading, _: reading.directory.find_member(workspace_id, user_id) is None,
        )

    async def list_keys(self, workspace_id: str) -> list[ApiKey]:
        """List the API keys of a workspace, newest first."""
        return await self._session.aread(lambda reading: reading.directory.list_keys(workspace_id))

    async def add_key(self, workspace_id: str, user_id: str, role: str, label: str) -> NewKey:
        """Make a key of a user for one workspace; it never allows more than the user may do."""
        return await self._session.achange(
            lambda tx: tx.directory.add_key(workspace_id, user_id, role, label),
            lambda reading, new: reading.directory.has_key(new.secret),
        )

    async def revoke_key(self, workspace_id: str, key_id: str) -> ApiKey:
        """Revoke a key of a workspace; revoking it twice is harmless."""
        return await self._session.achange(
            lambda tx: tx.directory.revoke_key(workspace_id, key_id),
            lambda reading, revoked: reading.directory.find_key(workspace_id, key_id) == revoked,
        )

    async def list_operator_keys(self) -> list[ApiKey]:
        """List the API keys that belong to no workspace, newest first."""
        return await self._session.aread(lambda reading: reading.directory.list_operator_keys())

    async def add_operator_key(self, user_id: str, label: str) -> NewKey:
        """Make a key of an operator for everything."""
        return await self._session.achange(
            lambda tx: tx.directory.add_operator_key(user_id, label),
            lambda reading, new: reading.directory.has_key(new.secret),
        )

    async def revoke_operator_key(self, key_id: str, *, force: bool = False) -> ApiKey:
        """Revoke a key that belongs to no workspace; the last one only by force."""
        return await self._session.achange(
            lambda tx: tx.directory.revoke_operator_key(key_id, force=force),
            lambda reading, revoked: reading.directory.find_operator_key(key_id) == revoked,
        )

    def agents(self) -> Agents:
        """Return the agents that were enrolled."""
        return Agents(self._session)

    def user_sessions(self, rule: SessionRule | None = None) -> UserSessions:
        """Return the sessions of browsers, which follow a rule about their lifetime."""
        return UserSessions(self._session, rule or SessionRule())

    async def secret(self, name: str) -> bytes:
        """Return a secret that all servers of this database share; the first call makes it."""
        known = await self._session.aread(lambda reading: reading.directory.find_secret(name))
        if known is not None:
            return known
        return await self._session.achange(
            lambda tx: tx.directory.ensure_secret(name),
            lambda reading, made: reading.directory.find_secret(name) == made,
        )

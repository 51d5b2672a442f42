"""Who may come in: workspaces, users, members and API keys.

A key is stored as its SHA-256 digest alone; it is shown once, when it is made. Keys hold 256 random
bits, so a slow hash would protect nothing that can be guessed.
"""

import hashlib
import secrets
from typing import Any, NamedTuple

from sqlalchemy import and_, delete, insert, select, update

from ade.clock import new_id
from ade.domain.errors import Conflict, NotFound
from ade.domain.ids import is_uuid
from ade.store.desk import Desk
from ade.store.schema import api_keys, members, users, workspaces
from ade.store.schema import secrets as shared_secrets

DEFAULT_WORKSPACE = "default"
FIRST_USER = "admin"
FIRST_KEY_LABEL = "first key"
KEY_PREFIX = "ade_"
KEY_BYTES = 32
WORKSPACES_LISTED_MAX = 1000
MEMBERS_LISTED_MAX = 1000
KEYS_LISTED_MAX = 1000
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Workspace(NamedTuple):
    """Hold a workspace."""

    id: str
    slug: str
    name: str
    created_at: int


class Member(NamedTuple):
    """Hold a user's place in a workspace."""

    user_id: str
    name: str
    role: str
    created_at: int


class ApiKey(NamedTuple):
    """Hold what may be known of a key after it was shown."""

    id: str
    label: str
    role: str | None
    user_id: str
    user_name: str
    created_at: int
    revoked_at: int | None


class KeyHolder(NamedTuple):
    """Hold who a key speaks for, and how far."""

    key_id: str
    user_id: str
    user_name: str
    operator: bool
    workspace_id: str | None
    role: str | None
    roles: dict[str, str]


class NewKey(NamedTuple):
    """Hold a key in the one moment in which it can be seen."""

    key: ApiKey
    secret: str


def new_secret() -> str:
    """Make a key: a prefix that scanners can find, and 256 random bits."""
    number = int.from_bytes(secrets.token_bytes(KEY_BYTES))
    text = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        text += _DIGITS[digit]
    return KEY_PREFIX + text.rjust(43, _DIGITS[0])


def key_digest(secret: str) -> str:
    """Return what is stored of a key."""
    return "sha256:" + hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class Directory(Desk):
    """Read and change who may come in."""

    def bootstrap(self, given_key: str | None = None) -> str | None:
        """Make workspace `default`, user `admin` and the first key; return a key that was made up.

        A given key is added whenever it is unknown, also later; one that was revoked stays so.
        It is not returned: whoever gave it knows it, and it is nothing for a log.
        Two servers that start at once meet at the workspace's unique slug: one makes everything.
        """
        return self._thread.submit(self._again, lambda: self._bootstrap(given_key)).result()

    def has_keys(self) -> bool:
        """Tell whether anyone could come in already."""
        found = self._thread.submit(self._again, lambda: self._rows(select(api_keys.c.id).limit(1)))
        return bool(found.result())

    async def find_key(self, digest: str) -> KeyHolder | None:
        """Find who a key speaks for, if it is valid."""
        return await self._run(lambda: self._find_key(digest), write=False)

    async def find_workspace(self, name: str) -> Workspace | None:
        """Find a workspace by slug or id."""
        return await self._run(lambda: self._workspace(name), write=False)

    async def list_workspaces(self) -> list[Workspace]:
        """List all workspaces by slug."""
        statement = select(workspaces).order_by(workspaces.c.slug).limit(WORKSPACES_LISTED_MAX)
        rows = await self._run(lambda: self._rows(statement), write=False)
        return [Workspace(*row) for row in rows]

    async def add_workspace(self, slug: str, name: str) -> Workspace:
        """Make a workspace, or raise Conflict if the slug is taken."""
        return await self._run(lambda: self._add_workspace(slug, name))

    async def list_members(self, workspace_id: str) -> list[Member]:
        """List the members of a workspace by name."""
        return await self._run(lambda: self._members(workspace_id), write=False)

    async def set_member(self, workspace_id: str, name: str, role: str) -> Member:
        """Give a user a role in a workspace; a name that nobody has becomes a user."""
        return await self._run(lambda: self._set_member(workspace_id, name, role))

    async def remove_member(self, workspace_id: str, user_id: str) -> None:
        """Take a user's role in a workspace, and with it what its keys may do there."""
        await self._run(lambda: self._remove_member(workspace_id, user_id))

    async def list_keys(self, workspace_id: str) -> list[ApiKey]:
        """List the keys of a workspace, newest first."""
        statement = (
            self._keys()
            .where(api_keys.c.workspace_id == workspace_id)
            .order_by(api_keys.c.id.desc())
            .limit(KEYS_LISTED_MAX)
        )
        rows = await self._run(lambda: self._rows(statement), write=False)
        return [ApiKey(*row) for row in rows]

    async def add_key(self, workspace_id: str, user_id: str, role: str, label: str) -> NewKey:
        """Make a key of a user for one workspace; it never allows more than its user may."""
        return await self._run(lambda: self._add_key(workspace_id, user_id, role, label))

    async def revoke_key(self, workspace_id: str, key_id: str) -> ApiKey:
        """Make a key of a workspace worthless; doing it twice is harmless."""
        return await self._run(lambda: self._revoke_key(workspace_id, key_id))

    async def secret(self, name: str) -> bytes:
        """Return a secret that all servers of this database share; the first to ask makes it up."""
        return await self._run(lambda: self._secret(name))

    # --- what the calls above do in their transaction -------------------------------------------

    def _secret(self, name: str) -> bytes:
        found = self._first(select(shared_secrets.c.value).where(shared_secrets.c.name == name))
        if found is not None:
            return bytes.fromhex(found[0])
        made = secrets.token_bytes(KEY_BYTES)
        now_us = self._clock.now_us()
        self._do(insert(shared_secrets).values(name=name, value=made.hex(), created_at=now_us))
        return made

    def _bootstrap(self, given_key: str | None) -> str | None:
        if self._workspace(DEFAULT_WORKSPACE) is None:
            self._add_workspace(DEFAULT_WORKSPACE, "Default")
        user = self._first(select(users.c.id).where(users.c.name == FIRST_USER))
        user_id = user[0] if user else self._add_user(FIRST_USER, operator=True)
        if given_key is None and self._first(select(api_keys.c.id).limit(1)):
            return None
        secret = given_key or new_secret()
        if self._first(select(api_keys.c.id).where(api_keys.c.digest == key_digest(secret))):
            return None
        self._insert_key(secret, user_id, None, None, FIRST_KEY_LABEL)
        return None if given_key else secret

    def _find_key(self, digest: str) -> KeyHolder | None:
        key = api_keys.c
        found = self._first(
            select(key.id, users.c.id, users.c.name, users.c.operator, key.workspace_id, key.role)
            .select_from(api_keys.join(users, key.user_id == users.c.id))
            .where(key.digest == digest, key.revoked_at.is_(None))
        )
        if found is None:
            return None
        key_id, user_id, user_name, operator, workspace_id, role = found
        held = self._rows(
            select(members.c.workspace_id, members.c.role).where(members.c.user_id == user_id)
        )
        return KeyHolder(key_id, user_id, user_name, bool(operator), workspace_id, role, dict(held))

    def _workspace(self, name: str) -> Workspace | None:
        same = workspaces.c.id == name.lower() if is_uuid(name) else workspaces.c.slug == name
        found = self._first(select(workspaces).where(same))
        return Workspace(*found) if found else None

    def _add_workspace(self, slug: str, name: str) -> Workspace:
        if self._first(select(workspaces.c.id).where(workspaces.c.slug == slug)):
            raise Conflict(f"There is a workspace {slug!r} already.")
        new = Workspace(new_id(self._clock), slug, name, self._clock.now_us())
        self._do(insert(workspaces).values(new._asdict()))
        return new

    def _add_user(self, name: str, *, operator: bool = False) -> str:
        user_id = new_id(self._clock)
        self._do(
            insert(users).values(
                id=user_id, name=name, operator=int(operator), created_at=self._clock.now_us()
            )
        )
        return user_id

    def _members(self, workspace_id: str, user_id: str | None = None) -> list[Member]:
        statement = (
            select(members.c.user_id, users.c.name, members.c.role, members.c.created_at)
            .select_from(members.join(users, members.c.user_id == users.c.id))
            .where(members.c.workspace_id == workspace_id)
            .order_by(users.c.name)
            .limit(MEMBERS_LISTED_MAX)
        )
        if user_id is not None:
            statement = statement.where(members.c.user_id == user_id)
        return [Member(*row) for row in self._rows(statement)]

    def _set_member(self, workspace_id: str, name: str, role: str) -> Member:
        user = self._first(select(users.c.id).where(users.c.name == name))
        user_id = user[0] if user else self._add_user(name)
        if self._members(workspace_id, user_id):
            self._do(update(members).where(_place(workspace_id, user_id)).values(role=role))
        else:
            self._do(
                insert(members).values(
                    workspace_id=workspace_id,
                    user_id=user_id,
                    role=role,
                    created_at=self._clock.now_us(),
                )
            )
        return self._members(workspace_id, user_id)[0]

    def _remove_member(self, workspace_id: str, user_id: str) -> None:
        if not is_uuid(user_id) or not self._members(workspace_id, user_id.lower()):
            raise NotFound("There is no such member in this workspace.")
        self._do(delete(members).where(_place(workspace_id, user_id.lower())))

    def _keys(self) -> Any:
        key = api_keys.c
        return select(
            key.id, key.label, key.role, key.user_id, users.c.name, key.created_at, key.revoked_at
        ).select_from(api_keys.join(users, key.user_id == users.c.id))

    def _add_key(self, workspace_id: str, user_id: str, role: str, label: str) -> NewKey:
        secret = new_secret()
        key_id = self._insert_key(secret, user_id, workspace_id, role, label)
        made = self._first(self._keys().where(api_keys.c.id == key_id))
        assert made is not None
        return NewKey(ApiKey(*made), secret)

    def _insert_key(
        self, secret: str, user_id: str, workspace_id: str | None, role: str | None, label: str
    ) -> str:
        key_id = new_id(self._clock)
        self._do(
            insert(api_keys).values(
                id=key_id,
                digest=key_digest(secret),
                user_id=user_id,
                workspace_id=workspace_id,
                role=role,
                label=label,
                created_at=self._clock.now_us(),
            )
        )
        return key_id

    def _revoke_key(self, workspace_id: str, key_id: str) -> ApiKey:
        if not is_uuid(key_id):
            raise NotFound("There is no such key in this workspace.")
        same = and_(api_keys.c.workspace_id == workspace_id, api_keys.c.id == key_id.lower())
        self._do(
            update(api_keys)
            .where(same, api_keys.c.revoked_at.is_(None))
            .values(revoked_at=self._clock.now_us())
        )
        found = self._first(self._keys().where(same))
        if found is None:
            raise NotFound("There is no such key in this workspace.")
        return ApiKey(*found)


def _place(workspace_id: str, user_id: str) -> Any:
    return and_(members.c.workspace_id == workspace_id, members.c.user_id == user_id)

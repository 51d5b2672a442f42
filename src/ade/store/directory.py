"""Who may use ADE: workspaces, users, members and API keys.

A key is stored as its SHA-256 digest only; its secret is shown once, when the key is made. Secrets
hold 256 random bits, so a slow hash would protect nothing that can be guessed.
"""

import hashlib
import secrets

from ade.domain.errors import Conflict, NotFound
from ade.domain.ids import is_uuid
from ade.store.executor import Executor, id_at
from ade.store.rows import ApiKey, KeyHolder, Member, NewKey, Workspace

DEFAULT_WORKSPACE = "default"
FIRST_USER = "admin"
FIRST_KEY_LABEL = "first key"
KEY_PREFIX = "ade_"
KEY_BYTES = 32
WORKSPACES_LISTED_MAX = 1000
MEMBERS_LISTED_MAX = 1000
KEYS_LISTED_MAX = 1000
LAST_OPERATOR_KEY = (
    "This is the last operator's key: without it nobody can make workspaces or operators' keys."
    " Make another first (POST /api/v1/keys), or send force=true; then only a new"
    " ADE_BOOTSTRAP_API_KEY at a restart gives access again."
)
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

PROBE_PREFIX = "probe-"


def new_secret(prefix: str = KEY_PREFIX) -> str:
    """Make a secret: a prefix that scanners can find and that says what it is, 256 random bits."""
    number = int.from_bytes(secrets.token_bytes(KEY_BYTES))
    text = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        text += _DIGITS[digit]
    return prefix + text.rjust(43, _DIGITS[0])


def key_digest(secret: str) -> str:
    """Return what is stored of a secret."""
    return "sha256:" + hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class DirectoryReading:
    """Read workspaces, users, members and API keys."""

    def __init__(self, sql: Executor) -> None:
        self._sql = sql

    def has_keys(self) -> bool:
        """Tell whether there is any API key, also a revoked one."""
        return bool(self._sql.scalar("count_keys"))

    def has_key(self, secret: str) -> bool:
        """Tell whether the key of a secret was added, also if it was revoked since."""
        return self._sql.first("find_key_by_digest", key_digest(secret)) is not None

    def find_key_holder(self, digest: str) -> KeyHolder | None:
        """Find the user that a key authenticates, if the key is valid."""
        found = self._sql.first("find_key_holder", digest)
        if found is None:
            return None
        key_id, user_id, user_name, operator, workspace_id, role = found
        roles = dict(self._sql.rows("list_roles", user_id))
        return KeyHolder(key_id, user_id, user_name, bool(operator), workspace_id, role, roles)

    def find_workspace(self, name: str) -> Workspace | None:
        """Find a workspace by slug or id."""
        if is_uuid(name):
            found = self._sql.first("find_workspace", name.lower())
        else:
            found = self._sql.first("find_workspace_by_slug", name)
        return Workspace(*found) if found else None

    def list_workspaces(self) -> list[Workspace]:
        """List all workspaces by slug."""
        return [Workspace(*row) for row in self._sql.rows("list_workspaces", WORKSPACES_LISTED_MAX)]

    def find_member(self, workspace_id: str, user_id: str) -> Member | None:
        """Find a member of a workspace."""
        if not is_uuid(user_id):
            return None
        found = self._sql.first("find_member", workspace_id, user_id.lower())
        return Member(*found) if found else None

    def list_members(self, workspace_id: str) -> list[Member]:
        """List the members of a workspace by name."""
        rows = self._sql.rows("list_members", workspace_id, MEMBERS_LISTED_MAX)
        return [Member(*row) for row in rows]

    def find_key(self, workspace_id: str, key_id: str) -> ApiKey | None:
        """Find an API key of a workspace."""
        if not is_uuid(key_id):
            return None
        found = self._sql.first("find_key", workspace_id, key_id.lower())
        return ApiKey(*found) if found else None

    def list_keys(self, workspace_id: str) -> list[ApiKey]:
        """List the API keys of a workspace, newest first."""
        rows = self._sql.rows("list_keys", workspace_id, KEYS_LISTED_MAX)
        return [ApiKey(*row) for row in rows]

    def find_operator_key(self, key_id: str) -> ApiKey | None:
        """Find an API key that belongs to no workspace."""
        if not is_uuid(key_id):
            return None
        found = self._sql.first("find_operator_key", key_id.lower())
        return ApiKey(*found) if found else None

    def list_operator_keys(self) -> list[ApiKey]:
        """List the API keys that belong to no workspace, newest first."""
        return [ApiKey(*row) for row in self._sql.rows("list_operator_keys", KEYS_LISTED_MAX)]

    def find_secret(self, name: str) -> bytes | None:
        """Find a secret that all servers of this database share."""
        found = self._sql.scalar("find_secret", name)
        return None if found is None else bytes.fromhex(found)


class DirectoryChanges(DirectoryReading):
    """Change workspaces, users, members and API keys."""

    def __init__(self, sql: Executor, now_us: int) -> None:
        super().__init__(sql)
        self._now_us = now_us

    def bootstrap(self, given_secret: str | None = None) -> str | None:
        """Make the first workspace, user and key; return the secret of the key that was added.

        A given secret is added whenever it is unknown, also later; one that was revoked stays
        revoked. None is returned if no key had to be added.
        """
        if self.find_workspace(DEFAULT_WORKSPACE) is None:
            self.add_workspace(DEFAULT_WORKSPACE, "Default")
        user_id = self._find_user(FIRST_USER) or self._add_user(FIRST_USER, operator=True)
        if given_secret is None and self.has_keys():
            return None
        secret = given_secret or new_secret()
        if self.has_key(secret):
            return None
        self._insert_key(secret, user_id, None, None, FIRST_KEY_LABEL)
        return secret

    def add_workspace(self, slug: str, name: str) -> Workspace:
        """Insert a workspace, or raise Conflict if the slug is taken."""
        if self._sql.first("find_workspace_by_slug", slug) is not None:
            raise Conflict(f"A workspace {slug!r} exists already.")
        new = Workspace(id_at(self._now_us), slug, name, self._now_us)
        self._sql.run("insert_workspace", *new)
        return new

    def set_member(self, workspace_id: str, name: str, role: str) -> Member:
        """Give a user a role in a workspace; an unknown name becomes a user."""
        user_id = self._find_user(name) or self._add_user(name)
        before = self.find_member(workspace_id, user_id)
        if before is not None:
            self._sql.run("change_role", workspace_id, user_id, role)
            return before._replace(role=role)
        self._sql.run("insert_member", workspace_id, user_id, role, self._now_us)
        return Member(user_id, name, role, self._now_us)

    def remove_member(self, workspace_id: str, user_id: str) -> None:
        """Take a user's role in a workspace, and with it what the user's keys allow there."""
        found = self.find_member(workspace_id, user_id)
        if found is None:
            raise NotFound("There is no such member in this workspace.")
        self._sql.run("delete_member", workspace_id, found.user_id)

    def add_key(self, workspace_id: str, user_id: str, role: str, label: str) -> NewKey:
        """Make a key of a user for one workspace; it never allows more than the user may do."""
        secret = new_secret()
        key_id = self._insert_key(secret, user_id, workspace_id, role, label)
        made = self.find_key(workspace_id, key_id)
        assert made is not None
        return NewKey(made, secret)

    def revoke_key(self, workspace_id: str, key_id: str) -> ApiKey:
        """Revoke a key of a workspace; revoking it twice is harmless."""
        if self.find_key(workspace_id, key_id) is None:
            raise NotFound("There is no such key in this workspace.")
        self._sql.run("revoke_key", workspace_id, key_id.lower(), self._now_us)
        self._end_sessions(key_id.lower())
        revoked = self.find_key(workspace_id, key_id)
        assert revoked is not None
        return revoked

    def add_operator_key(self, user_id: str, label: str) -> NewKey:
        """Make a key of an operator for everything."""
        secret = new_secret()
        made = self.find_operator_key(self._insert_key(secret, user_id, None, None, label))
        assert made is not None
        return NewKey(made, secret)

    def revoke_operator_key(self, key_id: str, *, force: bool = False) -> ApiKey:
        """Revoke a key that belongs to no workspace; the last one only by force."""
        valid = {row[0] for row in self._sql.rows("lock_operator_keys")}
        found = self.find_operator_key(key_id)
        if found is None:
            raise NotFound("There is no such key without a workspace.")
        if valid == {found.id} and not force:
            raise Conflict(LAST_OPERATOR_KEY)
        self._sql.run("revoke_operator_key", found.id, self._now_us)
        self._end_sessions(found.id)
        revoked = self.find_operator_key(key_id)
        assert revoked is not None
        return revoked

    def _end_sessions(self, key_id: str) -> None:
        self._sql.run("delete_sessions_of_key", key_id)
        self._sql.run("delete_links_of_key", key_id)

    def ensure_secret(self, name: str) -> bytes:
        """Return a secret that all servers of this database share; make it if there is none."""
        found = self.find_secret(name)
        if found is not None:
            return found
        made = secrets.token_bytes(KEY_BYTES)
        self._sql.run("insert_secret", name, made.hex(), self._now_us)
        return made

    def prove_write(self) -> None:
        """Write a row and delete it: what commits proves that the database takes writes.

        Nobody else sees or locks the row, and it leaves nothing behind.
        """
        name = PROBE_PREFIX + secrets.token_hex(6)
        self._sql.run("insert_secret", name, "", self._now_us)
        self._sql.run("delete_secret", name)

    def _find_user(self, name: str) -> str | None:
        found: str | None = self._sql.scalar("find_user", name)
        return found

    def _add_user(self, name: str, *, operator: bool = False) -> str:
        user_id = id_at(self._now_us)
        self._sql.run("insert_user", user_id, name, int(operator), self._now_us)
        return user_id

    def _insert_key(
        self, secret: str, user_id: str, workspace_id: str | None, role: str | None, label: str
    ) -> str:
        key_id = id_at(self._now_us)
        digest = key_digest(secret)
        row = (key_id, digest, user_id, workspace_id, role, label, self._now_us)
        self._sql.run("insert_key", *row)
        return key_id

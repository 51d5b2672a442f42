"""Who may come in: workspaces, users, members and API keys.

These tables are small and change rarely, so they stay out of the group commit: statements run one
after the other on a connection of their own, in a thread of their own, never in the event loop.
A key is stored as its SHA-256 digest alone; it is shown once, when it is made. Keys hold 256 random
bits, so a slow hash would protect nothing that can be guessed.
"""

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import and_, delete, insert, select, update
from sqlalchemy.sql.base import Executable

from ade.clock import Clock, SystemClock, new_id
from ade.domain.errors import AdeError, Conflict, NotFound, Unavailable
from ade.domain.ids import is_uuid
from ade.store.dialects import dialect_for
from ade.store.schema import api_keys, members, users, workspaces

DEFAULT_WORKSPACE = "default"
FIRST_USER = "admin"
FIRST_KEY_LABEL = "first key"
KEY_PREFIX = "ade_"
KEY_BYTES = 32
RUNS_MAX = 5
WORKSPACES_LISTED_MAX = 1000
MEMBERS_LISTED_MAX = 1000
KEYS_LISTED_MAX = 1000
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

Found = TypeVar("Found")


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


class Directory:
    """Read and change who may come in."""

    def __init__(self, url: str, *, clock: Clock | None = None) -> None:
        self._dialect, self._url = dialect_for(url)
        self._clock = clock or SystemClock()
        self._connection: Any = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ade-directory")

    def close(self) -> None:
        """Let go of the database."""
        self._thread.submit(self._disconnect).result()
        self._thread.shutdown(wait=True)

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

    # --- in the thread --------------------------------------------------------------------------

    async def _run(self, work: Callable[[], Found], *, write: bool = True) -> Found:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: self._again(work, write=write))

    def _again(self, work: Callable[[], Found], *, write: bool = True) -> Found:
        """Run work in a transaction; after a lost race or a broken connection, once more."""
        for run in range(1, RUNS_MAX + 1):
            try:
                return self._transact(work, write=write)
            except AdeError:
                raise
            except Exception as error:
                if run == RUNS_MAX or not (self._dialect.is_conflict(error) or run == 1):
                    raise
        raise AssertionError("unreachable")

    def _transact(self, work: Callable[[], Found], *, write: bool) -> Found:
        if self._connection is None:
            self._connection = self._connect()
        self._cursor = self._connection.cursor()
        try:
            self._dialect.begin(self._cursor, write=write)
            found = work()
            self._cursor.execute("COMMIT")
            return found
        except AdeError:
            self._cursor.execute("ROLLBACK")
            raise
        except BaseException:
            self._disconnect()
            raise

    def _connect(self) -> Any:
        try:
            return self._dialect.connect(self._url)
        except Exception as error:
            raise Unavailable("The database cannot be reached.") from error

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # it may be broken already
                connection.close()

    def _do(self, statement: Executable) -> None:
        compiled: Any = statement.compile(dialect=self._dialect.core)  # type: ignore[attr-defined]
        values = compiled.construct_params()
        names = compiled.positiontup or ()
        self._cursor.execute(str(compiled), tuple(values[name] for name in names))

    def _rows(self, statement: Executable) -> list[tuple[Any, ...]]:
        self._do(statement)
        return [tuple(row) for row in self._cursor.fetchall()]

    def _first(self, statement: Executable) -> tuple[Any, ...] | None:
        return next(iter(self._rows(statement)), None)

    # --- what the calls above do in their transaction -------------------------------------------

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

"""Sessions of browsers, and the one-time links that begin them.

The model. A session is what a browser holds instead of an API key: a random token in a cookie,
whose SHA-256 digest is in the row. It begins with a key (typed into the sign-in form) or with a
one-time link (made for a key by someone at the server's machine), belongs to that key, and allows
exactly what the key allows at this moment: every lookup joins the key and its user.

The rule about time. Every time is that of the transaction, or the one that the session of the
database gives for a read. A session expires when it was idle for too long, and in any case some
days after it began (`SessionRule`). That it is in use is written once a minute at most, so it may
expire up to a minute earlier than its last request would allow.

    what happens                            what becomes of the session
    --------------------------------------  ----------------------------------------------------
    its key is revoked                      deleted in the same transaction; one that begins at
                                            the same moment is not found, because its key is not
    its user loses a role                   it allows less at the next lookup
    too many sessions of one key            the one that was used least recently is deleted
    a link is used twice, also at once      one use begins a session, the other is refused
    the longest lifetime is made shorter    ended when it is used next, or when it expires
"""

from ade.domain.errors import NotFound, Unauthenticated
from ade.domain.ids import is_uuid
from ade.domain.session_rule import SessionRule
from ade.domain.units import MICROSECONDS
from ade.store.directory import DirectoryReading, key_digest, new_secret
from ade.store.executor import Executor, id_at
from ade.store.port import LostRace
from ade.store.rows import KeyHolder, LinkState, NewUserSession, UserSession

TOKEN_PREFIX = "ades_"
LINK_PREFIX = "adel_"
SESSIONS_PER_KEY_MAX = 20
LINKS_PER_KEY_MAX = 10
SESSIONS_LISTED_MAX = 1000
CLIENT_CHARACTERS_MAX = 120
SEEN_EVERY_SECONDS = 60
NO_KEY = "This API key is not valid."
NO_OPERATOR_KEY = (
    "There is no valid operator's key that a link could sign in with."
    " Set ADE_BOOTSTRAP_API_KEY to a new key and restart `ade serve`."
)


class UserSessionReading:
    """Read sessions and one-time links."""

    def __init__(self, sql: Executor) -> None:
        self._sql = sql

    def find(self, digest: str, now_us: int) -> tuple[UserSession, KeyHolder] | None:
        """Find a session that has not expired, and what its key allows."""
        found = self._sql.first("find_session", digest, now_us)
        if found is None:
            return None
        session = UserSession._make(found[:-3])
        operator, workspace_id, role = found[-3:]
        roles = dict(self._sql.rows("list_roles", session.user_id))
        user = (session.key_id, session.user_id, session.user_name)
        return session, KeyHolder(*user, bool(operator), workspace_id, role, roles)

    def find_by_id(self, session_id: str) -> UserSession | None:
        """Find a session by its id, also an expired one."""
        if not is_uuid(session_id):
            return None
        found = self._sql.first("find_session_by_id", session_id.lower())
        return UserSession._make(found) if found else None

    def list_all(self, now_us: int) -> list[UserSession]:
        """List the sessions of everybody, newest first."""
        return self._listed("list_sessions", now_us)

    def list_of_user(self, user_id: str, now_us: int) -> list[UserSession]:
        """List the sessions of a user, newest first."""
        return self._listed("list_sessions_of_user", user_id, now_us)

    def list_of_key(self, key_id: str, now_us: int) -> list[UserSession]:
        """List the sessions that began with a key, newest first."""
        return self._listed("list_sessions_of_key", key_id, now_us)

    def link_state(self, token: str, now_us: int) -> LinkState:
        """Tell whether a one-time link can be used."""
        found = self._sql.first("find_link", key_digest(token))
        if found is None:
            return LinkState.UNKNOWN
        *_, expires_at, used_at = found
        if used_at is not None:
            return LinkState.USED
        return LinkState.EXPIRED if expires_at <= now_us else LinkState.USABLE

    def _listed(self, name: str, *values: object) -> list[UserSession]:
        return [
            UserSession._make(row) for row in self._sql.rows(name, *values, SESSIONS_LISTED_MAX)
        ]


class UserSessionChanges(UserSessionReading):
    """Begin, keep and end sessions."""

    def __init__(self, sql: Executor, now_us: int) -> None:
        super().__init__(sql)
        self._now_us = now_us

    def begin(
        self, key: str, client: str, rule: SessionRule, replaced: str | None = None
    ) -> NewUserSession:
        """Begin a session with an API key, or raise Unauthenticated.

        The session that the browser held until now is ended, if there is one.
        """
        return self._begin(key_digest(key), client, rule, replaced)

    def begin_by_link(
        self, link: str, client: str, rule: SessionRule, replaced: str | None = None
    ) -> NewUserSession | LinkState:
        """Begin a session with a one-time link and use it up, or return why it cannot be used."""
        state = self.link_state(link, self._now_us)
        if state is not LinkState.USABLE:
            return state
        link_id, _, digest, *_ = self._sql.first("find_link", key_digest(link)) or ()
        if self._sql.run("use_link", link_id, self._now_us) != 1:
            raise LostRace("somebody else used this link at the same moment")
        return self._begin(digest, client, rule, replaced)

    def touch(self, session: UserSession, rule: SessionRule) -> UserSession | None:
        """Record that a session is in use; return None if the rule ends it."""
        seen_before = self._now_us - SEEN_EVERY_SECONDS * MICROSECONDS
        expires_at = rule.expires_at(session.created_at, self._now_us)
        if expires_at <= self._now_us:
            self.end([session.id])
            return None
        if self._sql.run("touch_session", session.id, seen_before, self._now_us, expires_at):
            return session._replace(last_seen_at=self._now_us, expires_at=expires_at)
        return self.find_by_id(session.id)

    def end(self, session_ids: list[str]) -> None:
        """End sessions; one that has ended already is passed over."""
        self._sql.run("delete_sessions", self._sql.dialect.list_parameter(session_ids))

    def end_all_of_user(self, user_id: str) -> None:
        """End the sessions of a user."""
        self._sql.run("delete_sessions_of_user", user_id)

    def end_all_of_key(self, key_id: str) -> None:
        """End the sessions that began with a key, and make its links void."""
        self._sql.run("delete_sessions_of_key", key_id)
        self._sql.run("delete_links_of_key", key_id)

    def add_link(self, key_id: str, seconds: int) -> str:
        """Make a one-time link that signs in with what a key allows; return its token.

        Of too many links of one key, the oldest are deleted.
        """
        older = [row[0] for row in self._sql.rows("newest_links", key_id)]
        self._delete_links(older[LINKS_PER_KEY_MAX - 1 :])
        token = new_secret(LINK_PREFIX)
        expires_at = self._now_us + seconds * MICROSECONDS
        row = (id_at(self._now_us), key_digest(token), key_id, self._now_us, expires_at)
        self._sql.run("insert_link", *row)
        return token

    def add_operator_link(self, seconds: int) -> str:
        """Make a one-time link that signs in with the newest operator's key; return its token."""
        keys = self._sql.rows("lock_operator_keys")
        if not keys:
            raise NotFound(NO_OPERATOR_KEY)
        return self.add_link(keys[-1][0], seconds)

    def delete_expired(self, limit: int) -> int:
        """Delete sessions and links that have expired, a bounded number; return how many."""
        over = [row[0] for row in self._sql.rows("expired_sessions", self._now_us, limit)]
        if over:
            self.end(over)
        links = [row[0] for row in self._sql.rows("expired_links", self._now_us, limit)]
        self._delete_links(links)
        return len(over) + len(links)

    def _begin(
        self, digest: str, client: str, rule: SessionRule, replaced: str | None
    ) -> NewUserSession:
        holder = DirectoryReading(self._sql).find_key_holder(digest)
        if holder is None:
            raise Unauthenticated(NO_KEY)
        if replaced is not None:
            self._sql.run("delete_session_by_digest", key_digest(replaced))
        others = [row[0] for row in self._sql.rows("least_idle_sessions", holder.key_id)]
        if surplus := others[SESSIONS_PER_KEY_MAX - 1 :]:
            self.end(surplus)
        token, now = new_secret(TOKEN_PREFIX), self._now_us
        session = UserSession(
            id=id_at(now),
            user_id=holder.user_id,
            user_name=holder.user_name,
            key_id=holder.key_id,
            client=client[:CLIENT_CHARACTERS_MAX],
            created_at=now,
            last_seen_at=now,
            expires_at=rule.expires_at(now, now),
        )
        self._sql.run(
            "insert_session",
            session.id,
            key_digest(token),
            session.user_id,
            session.key_id,
            session.client,
            session.created_at,
            session.last_seen_at,
            session.expires_at,
        )
        return NewUserSession(session, token)

    def _delete_links(self, link_ids: list[str]) -> None:
        if link_ids:
            self._sql.run("delete_links", self._sql.dialect.list_parameter(link_ids))

"""The sessions of browsers as calls: begin, find, keep, list and end them."""

from ade.domain.session_rule import SessionRule
from ade.domain.units import MICROSECONDS
from ade.store.rows import KeyHolder, LinkState, NewUserSession, UserSession
from ade.store.session import Session
from ade.store.user_sessions import SEEN_EVERY_SECONDS

EXPIRED_PER_CALL_MAX = 500


class UserSessions:
    """Begin and end the sessions of browsers, by one rule about their lifetime."""

    def __init__(self, session: Session, rule: SessionRule) -> None:
        self._session = session
        self.rule = rule

    async def begin(self, key: str, client: str, replaced: str | None = None) -> NewUserSession:
        """Begin a session with an API key, or raise Unauthenticated; end the one it replaces."""
        return await self._session.achange(
            lambda tx: tx.user_sessions.begin(key, client, self.rule, replaced),
            lambda reading, new: reading.user_sessions.find_by_id(new.session.id) is not None,
        )

    async def begin_by_link(
        self, link: str, client: str, replaced: str | None = None
    ) -> NewUserSession | LinkState:
        """Begin a session with a one-time link, or return why it cannot be used."""
        return await self._session.achange(
            lambda tx: tx.user_sessions.begin_by_link(link, client, self.rule, replaced),
            lambda reading, new: (
                isinstance(new, LinkState)
                or reading.user_sessions.find_by_id(new.session.id) is not None
            ),
        )

    def make_link(self, seconds: int) -> str:
        """Make a one-time link for the newest operator's key, or raise NotFound."""
        return self._session.change(
            lambda tx: tx.user_sessions.add_operator_link(seconds),
            lambda reading, token: (
                reading.user_sessions.link_state(token, 0) is not LinkState.UNKNOWN
            ),
        )

    async def link_state(self, link: str) -> LinkState:
        """Tell whether a one-time link can be used, without using it."""
        now_us = self._session.clock.now_us()
        return await self._session.aread(
            lambda reading: reading.user_sessions.link_state(link, now_us)
        )

    async def find(self, digest: str) -> tuple[UserSession, KeyHolder] | None:
        """Find a session that has not expired, and what its key allows."""
        now_us = self._session.clock.now_us()
        return await self._session.aread(lambda reading: reading.user_sessions.find(digest, now_us))

    def is_due(self, session: UserSession) -> bool:
        """Tell whether it is time to record that a session is in use."""
        unseen_us = self._session.clock.now_us() - session.last_seen_at
        return unseen_us >= SEEN_EVERY_SECONDS * MICROSECONDS

    async def touch(self, session: UserSession) -> UserSession | None:
        """Record that a session is in use; return None if it has ended."""
        return await self._session.achange(
            lambda tx: tx.user_sessions.touch(session, self.rule), lambda reading, touched: True
        )

    async def list_all(self) -> list[UserSession]:
        """List the sessions of everybody, newest first."""
        now_us = self._session.clock.now_us()
        return await self._session.aread(lambda reading: reading.user_sessions.list_all(now_us))

    async def list_of_key(self, key_id: str) -> list[UserSession]:
        """List the sessions that began with a key, newest first."""
        now_us = self._session.clock.now_us()
        return await self._session.aread(
            lambda reading: reading.user_sessions.list_of_key(key_id, now_us)
        )

    async def find_by_id(self, session_id: str) -> UserSession | None:
        """Find a session by its id."""
        return await self._session.aread(
            lambda reading: reading.user_sessions.find_by_id(session_id)
        )

    async def end(self, session_id: str) -> None:
        """End a session; ending it twice is harmless."""
        await self._session.achange(
            lambda tx: tx.user_sessions.end([session_id]),
            lambda reading, _: reading.user_sessions.find_by_id(session_id) is None,
        )

    async def end_all_of_user(self, user_id: str) -> None:
        """End the sessions of a user."""
        await self._session.achange(
            lambda tx: tx.user_sessions.end_all_of_user(user_id),
            lambda reading, _: not reading.user_sessions.list_of_user(user_id, 0),
        )

    async def end_all_of_key(self, key_id: str) -> None:
        """End the sessions that began with a key, and make its links void."""
        await self._session.achange(
            lambda tx: tx.user_sessions.end_all_of_key(key_id),
            lambda reading, _: not reading.user_sessions.list_of_key(key_id, 0),
        )

    async def delete_expired(self) -> int:
        """Delete sessions and links that have expired, a bounded number; return how many."""
        return await self._session.achange(
            lambda tx: tx.user_sessions.delete_expired(EXPIRED_PER_CALL_MAX),
            lambda reading, deleted: True,
        )

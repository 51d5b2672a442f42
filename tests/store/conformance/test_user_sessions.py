"""Sessions of browsers and one-time links: how they begin, last and end."""

import asyncio
from collections.abc import Callable

import pytest
from tests.databases import SqlDatabase

from ade.app.directory import Directory
from ade.app.user_sessions import UserSessions
from ade.clock import ManualClock
from ade.domain.errors import Conflict, NotFound, Unauthenticated
from ade.domain.session_rule import SessionRule
from ade.store import schema
from ade.store.directory import key_digest
from ade.store.rows import LinkState, NewUserSession
from ade.store.user_sessions import (
    LINKS_PER_KEY_MAX,
    SEEN_EVERY_SECONDS,
    SESSIONS_PER_KEY_MAX,
)

Open = Callable[[], Directory]
RULE = SessionRule(idle_seconds=3600, max_seconds=10_000)


@pytest.fixture
def key(directory: Directory) -> str:
    """Make the first key."""
    made = directory.bootstrap()
    assert made is not None
    return made


@pytest.fixture
def sessions(directory: Directory, key: str) -> UserSessions:
    """Open the sessions of a database with one key."""
    return directory.user_sessions(RULE)


async def is_known(sessions: UserSessions, new: NewUserSession) -> bool:
    return await sessions.find(key_digest(new.token)) is not None


async def use(sessions: UserSessions, link: str) -> NewUserSession:
    began = await sessions.begin_by_link(link, "browser")
    assert isinstance(began, NewUserSession)
    return began


async def test_a_session_allows_what_its_key_allows(
    sessions: UserSessions, directory: Directory, key: str
) -> None:
    new = await sessions.begin(key, "Firefox on Linux")
    found = await sessions.find(key_digest(new.token))
    assert found is not None
    session, holder = found
    assert session == new.session
    assert session.client == "Firefox on Linux"
    assert holder == await directory.find_key(key_digest(key))
    assert key not in repr(new)


async def test_a_sessions_roles_are_those_of_now(directory: Directory, key: str) -> None:
    workspace = await directory.find_workspace("default")
    assert workspace is not None
    member = await directory.set_member(workspace.id, "ann", "editor")
    made = await directory.add_key(workspace.id, member.user_id, "editor", "laptop")
    sessions = directory.user_sessions(RULE)
    new = await sessions.begin(made.secret, "")
    await directory.set_member(workspace.id, "ann", "viewer")
    found = await sessions.find(key_digest(new.token))
    assert found is not None
    assert found[1].roles == {workspace.id: "viewer"}
    assert (found[1].workspace_id, found[1].role) == (workspace.id, "editor")


@pytest.mark.parametrize("secret", ["", "wrong", "ade_wrong"])
async def test_a_wrong_key_begins_nothing(sessions: UserSessions, secret: str) -> None:
    with pytest.raises(Unauthenticated):
        await sessions.begin(secret, "")
    assert await sessions.list_all() == []


async def test_a_token_is_no_key_and_a_key_no_token(
    sessions: UserSessions, directory: Directory, key: str
) -> None:
    new = await sessions.begin(key, "")
    assert await directory.find_key(key_digest(new.token)) is None
    assert await sessions.find(key_digest(key)) is None
    with pytest.raises(Unauthenticated):
        await sessions.begin(new.token, "")


async def test_an_idle_session_expires(
    sessions: UserSessions, clock: ManualClock, key: str
) -> None:
    new = await sessions.begin(key, "")
    clock.advance(RULE.idle_seconds - 1)
    assert await is_known(sessions, new)
    clock.advance(1)
    assert not await is_known(sessions, new)
    assert await sessions.list_all() == []


async def test_a_session_in_use_lasts_until_its_end(
    sessions: UserSessions, clock: ManualClock, key: str
) -> None:
    session = (await sessions.begin(key, "")).session
    seen = 0.0
    while seen + RULE.idle_seconds / 2 < RULE.max_seconds:
        clock.advance(RULE.idle_seconds / 2)
        seen += RULE.idle_seconds / 2
        assert sessions.is_due(session)
        touched = await sessions.touch(session)
        assert touched is not None
        session = touched
    assert session.expires_at == session.created_at + RULE.max_seconds * 10**6
    clock.advance(RULE.max_seconds - seen)
    assert await sessions.list_all() == []


async def test_use_is_recorded_once_a_minute(
    sessions: UserSessions, clock: ManualClock, key: str
) -> None:
    session = (await sessions.begin(key, "")).session
    clock.advance(SEEN_EVERY_SECONDS - 1)
    assert not sessions.is_due(session)
    assert await sessions.touch(session) == session
    clock.advance(1)
    assert sessions.is_due(session)
    first, second = await asyncio.gather(sessions.touch(session), sessions.touch(session))
    assert first == second != session


async def test_a_rule_that_became_shorter_ends_a_session(
    sessions: UserSessions, directory: Directory, clock: ManualClock, key: str
) -> None:
    new = await sessions.begin(key, "")
    clock.advance(600)
    shorter = directory.user_sessions(SessionRule(idle_seconds=60, max_seconds=300))
    assert await shorter.touch(new.session) is None
    assert not await is_known(sessions, new)


async def test_signing_in_again_ends_the_session_before(sessions: UserSessions, key: str) -> None:
    first = await sessions.begin(key, "")
    second = await sessions.begin(key, "", first.token)
    assert first.token != second.token
    assert [one.id for one in await sessions.list_all()] == [second.session.id]


async def test_a_key_has_so_many_sessions(
    sessions: UserSessions, clock: ManualClock, key: str
) -> None:
    begun = []
    for _ in range(SESSIONS_PER_KEY_MAX):
        begun.append(await sessions.begin(key, ""))
        clock.advance(1)
    clock.advance(SEEN_EVERY_SECONDS)
    assert await sessions.touch(begun[0].session)
    latest = await sessions.begin(key, "")
    left = {one.id for one in await sessions.list_all()}
    assert len(left) == SESSIONS_PER_KEY_MAX
    assert {begun[0].session.id, latest.session.id} <= left
    assert begun[1].session.id not in left


async def test_ending(sessions: UserSessions, directory: Directory, key: str) -> None:
    workspace = await directory.find_workspace("default")
    holder = await directory.find_key(key_digest(key))
    assert workspace is not None
    assert holder is not None
    other = await directory.add_key(workspace.id, holder.user_id, "viewer", "ci")
    mine = [await sessions.begin(key, "") for _ in range(3)]
    theirs = await sessions.begin(other.secret, "")
    await sessions.end(mine[0].session.id)
    await sessions.end(mine[0].session.id)
    assert await sessions.find_by_id(mine[0].session.id) is None
    await sessions.end_all_of_key(other.key.id)
    assert not await is_known(sessions, theirs)
    assert len(await sessions.list_of_key(holder.key_id)) == 2
    await sessions.end_all_of_user(holder.user_id)
    assert await sessions.list_all() == []


async def test_revoking_a_key_ends_its_sessions_and_links(
    sessions: UserSessions, directory: Directory, open_directory: Open, key: str
) -> None:
    new = await sessions.begin(key, "")
    link = sessions.make_link(60)
    holder = await directory.find_key(key_digest(key))
    assert holder is not None
    await directory.revoke_operator_key(holder.key_id, force=True)
    elsewhere = open_directory().user_sessions(RULE)
    assert not await is_known(elsewhere, new)
    assert await elsewhere.list_all() == []
    assert await elsewhere.begin_by_link(link, "") is LinkState.UNKNOWN
    with pytest.raises(NotFound, match="ADE_BOOTSTRAP_API_KEY"):
        sessions.make_link(60)


async def test_a_session_that_begins_while_its_key_is_revoked_is_not_found(
    sessions: UserSessions, sql_database: SqlDatabase, key: str
) -> None:
    """Such a session escapes the deletion; the key that it belongs to is looked up all the same."""
    new, link = await sessions.begin(key, ""), sessions.make_link(60)
    with sql_database.connect() as connection:
        connection.execute(schema.api_keys.update().values(revoked_at=1))
    assert not await is_known(sessions, new)
    assert await sessions.begin_by_link(link, "") is LinkState.UNKNOWN


async def test_revoking_a_key_of_a_workspace_ends_its_sessions_only(
    sessions: UserSessions, directory: Directory, key: str
) -> None:
    workspace = await directory.find_workspace("default")
    assert workspace is not None
    member = await directory.set_member(workspace.id, "ann", "editor")
    made = await directory.add_key(workspace.id, member.user_id, "editor", "laptop")
    theirs, mine = await sessions.begin(made.secret, ""), await sessions.begin(key, "")
    await directory.revoke_key(workspace.id, made.key.id)
    assert not await is_known(sessions, theirs)
    assert await is_known(sessions, mine)


async def test_what_has_expired_is_deleted_in_batches(
    sessions: UserSessions, clock: ManualClock, key: str
) -> None:
    for _ in range(3):
        await sessions.begin(key, "")
    sessions.make_link(60)
    clock.advance(RULE.idle_seconds)
    fresh = await sessions.begin(key, "")
    assert await sessions.delete_expired() == 4
    assert await sessions.delete_expired() == 0
    assert await is_known(sessions, fresh)


# --- one-time links -------------------------------------------------------------------------------


async def test_a_link_works_once(sessions: UserSessions) -> None:
    link = sessions.make_link(60)
    assert await sessions.link_state(link) is LinkState.USABLE
    assert await sessions.link_state(link) is LinkState.USABLE
    assert await is_known(sessions, await use(sessions, link))
    assert await sessions.link_state(link) is LinkState.USED
    assert await sessions.begin_by_link(link, "") is LinkState.USED
    assert len(await sessions.list_all()) == 1


async def test_a_link_that_is_used_twice_at_once_works_once(
    sessions: UserSessions, open_directory: Open
) -> None:
    link = sessions.make_link(60)
    others = [open_directory().user_sessions(RULE) for _ in range(4)]
    answers = await asyncio.gather(*[other.begin_by_link(link, "") for other in others])
    assert len([one for one in answers if isinstance(one, NewUserSession)]) == 1
    assert [one for one in answers if isinstance(one, LinkState)] == [LinkState.USED] * 3
    assert len(await sessions.list_all()) == 1


async def test_a_link_expires(sessions: UserSessions, clock: ManualClock) -> None:
    link = sessions.make_link(60)
    clock.advance(60)
    assert await sessions.link_state(link) is LinkState.EXPIRED
    assert await sessions.begin_by_link(link, "") is LinkState.EXPIRED


@pytest.mark.parametrize("token", ["", "wrong", "w\0x", "\ud800"])
async def test_an_unknown_link_is_refused(sessions: UserSessions, token: str) -> None:
    assert await sessions.link_state(token) is LinkState.UNKNOWN
    assert await sessions.begin_by_link(token, "") is LinkState.UNKNOWN


async def test_a_key_has_so_many_links(sessions: UserSessions, clock: ManualClock) -> None:
    links = []
    for _ in range(LINKS_PER_KEY_MAX + 1):
        clock.advance(1)
        links.append(sessions.make_link(600))
    assert await sessions.link_state(links[0]) is LinkState.UNKNOWN
    for link in links[1:]:
        assert await sessions.link_state(link) is LinkState.USABLE


# --- keys without a workspace ---------------------------------------------------------------------


async def test_the_first_key_is_listed_and_revoked(
    directory: Directory, clock: ManualClock, key: str
) -> None:
    [first] = await directory.list_operator_keys()
    clock.advance(1)
    with pytest.raises(Conflict, match="last operator"):
        await directory.revoke_operator_key(first.id)
    second = await directory.add_operator_key(first.user_id, "second")
    revoked = await directory.revoke_operator_key(first.id)
    assert revoked.revoked_at is not None
    assert await directory.find_key(key_digest(key)) is None
    assert await directory.revoke_operator_key(first.id) == revoked
    listed = await directory.list_operator_keys()
    assert [one.id for one in listed] == [second.key.id, first.id]
    holder = await directory.find_key(key_digest(second.secret))
    assert holder is not None
    assert holder.operator


async def test_keys_of_workspaces_are_not_revoked_as_operators_keys(
    directory: Directory, key: str
) -> None:
    workspace = await directory.find_workspace("default")
    assert workspace is not None
    member = await directory.set_member(workspace.id, "ann", "viewer")
    made = await directory.add_key(workspace.id, member.user_id, "viewer", "laptop")
    assert made.key not in await directory.list_operator_keys()
    for key_id in (made.key.id, "", "x", member.user_id):
        with pytest.raises(NotFound):
            await directory.revoke_operator_key(key_id, force=True)


async def test_two_operators_cannot_revoke_each_other_at_once(
    open_directory: Open, directory: Directory, key: str
) -> None:
    [first] = await directory.list_operator_keys()
    second = await directory.add_operator_key(first.user_id, "second")
    outcomes = await asyncio.gather(
        open_directory().revoke_operator_key(first.id),
        open_directory().revoke_operator_key(second.key.id),
        return_exceptions=True,
    )
    assert len([one for one in outcomes if isinstance(one, Conflict)]) == 1
    listed = await directory.list_operator_keys()
    assert len([one for one in listed if one.revoked_at is None]) == 1

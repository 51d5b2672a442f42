"""Changes of the catalogue and the directory share transactions with jobs, and nothing else."""

import asyncio
from typing import Any

import pytest
from tests.databases import WORKSPACE, SqlDatabase
from tests.store.acts import LIMITS, submission
from tests.store.writer import BreaksAtCommit, Gathering

from ade.app.agents import Agents
from ade.app.catalogue import Catalogue, WantedRun
from ade.app.directory import Directory
from ade.clock import ManualClock
from ade.domain.errors import Conflict, NotFound, StorageFull, Unavailable
from ade.kernel import Kernel
from ade.stages.builds import RequiredBuild
from ade.stages.kernel_settings import KernelSettings
from ade.stages.submit.model import Accepted
from ade.store.directory import key_digest
from ade.store.group_commit import OutcomeUnknown
from ade.store.rows import File, NewUserSession
from ade.store.session import Session
from ade.store.transaction import SqlTransaction

DIGEST = "sha256:" + "a" * 64
FILE = File("columns/name.py", DIGEST, 10)


@pytest.fixture
def session(sql_database: SqlDatabase, clock: ManualClock) -> Session:
    return sql_database.open(clock)


@pytest.fixture
def catalogue(session: Session) -> Catalogue:
    return Catalogue(session)


@pytest.fixture
def directory(session: Session) -> Directory:
    return Directory(session)


# --- refusals -------------------------------------------------------------------------------------


def test_a_refusal_leaves_the_jobs_of_its_group_alone(session: Session) -> None:
    kernel = Kernel(session, KernelSettings(queue_size=0))
    gathering = Gathering(session)
    refused, accepted, added = gathering.run(
        lambda: session.change(
            lambda tx: tx.catalogue.add_document(
                WORKSPACE, "d", DIGEST, 1000, None, quota_bytes=999
            )
        ),
        lambda: kernel.now.submit(submission()),
        lambda: session.change(
            lambda tx: tx.catalogue.add_document(WORKSPACE, "d", DIGEST, 10, None, quota_bytes=999)
        ),
    )
    assert isinstance(refused, StorageFull)
    assert isinstance(accepted, Accepted)
    assert gathering.commits == 1
    found = session.read(lambda reading: reading.catalogue.list_documents(WORKSPACE, None, 9))
    assert [document.id for document in found] == [added.id]


def test_a_refusal_after_a_change_undoes_the_change_and_nothing_else(session: Session) -> None:
    kernel = Kernel(session, KernelSettings(queue_size=0))

    def change_and_refuse(tx: SqlTransaction) -> None:
        tx.directory.add_workspace("new", "New")
        raise Conflict("It is a test.")

    refused, accepted = Gathering(session).run(
        lambda: session.change(change_and_refuse), lambda: kernel.now.submit(submission())
    )
    assert isinstance(refused, Conflict)
    assert isinstance(accepted, Accepted)
    assert session.read(lambda reading: reading.directory.find_workspace("new")) is None
    jobs = session.read(lambda reading: reading.list_jobs(WORKSPACE, {}, None, 9))
    assert [job.id for job in jobs] == [accepted.job.id]


def test_the_locks_of_a_change_are_taken_after_those_of_jobs(session: Session) -> None:
    """Two processes that took them in another order would wait for each other."""
    order: list[str] = []

    def verb(tx: Any, items: list[None]) -> list[None]:
        order.append("verb")
        return items

    def work(tx: SqlTransaction) -> None:
        order.append("change")

    Gathering(session).run(lambda: session.change(work), lambda: session.write(verb, [None]))
    assert order == ["verb", "change"]


# --- a commit whose outcome is not known ----------------------------------------------------------


def break_the_next_commit(session: Session, *, arrives: bool) -> None:
    """Let the connection break at the next commit, before or after it arrives."""
    if session._connection is None:
        session.write(lambda tx, items: items, [None])
    breaking = BreaksAtCommit(session._connection, arrives=arrives)
    session._connection = breaking
    breaking.armed = True


@pytest.mark.parametrize("arrives", [True, False])
async def test_an_upload_whose_commit_broke_is_looked_up(
    session: Session, catalogue: Catalogue, arrives: bool
) -> None:
    break_the_next_commit(session, arrives=arrives)
    adding = catalogue.add_document(WORKSPACE, "d", DIGEST, 10, None)
    if arrives:
        added = await adding
        assert await catalogue.find_document(WORKSPACE, added.id) == added
    else:
        with pytest.raises(OutcomeUnknown):
            await adding
    assert len(await catalogue.list_documents(WORKSPACE, before=None, limit=9)) == int(arrives)
    await catalogue.add_document(WORKSPACE, "e", DIGEST, 10, None)  # on a new connection


async def test_a_refusal_stands_whatever_became_of_the_commit(
    session: Session, catalogue: Catalogue
) -> None:
    break_the_next_commit(session, arrives=False)
    with pytest.raises(NotFound):
        await catalogue.delete_document(WORKSPACE, "no id")


async def test_an_outcome_that_cannot_be_looked_up_stays_unknown(
    session: Session, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_the_next_commit(session, arrives=True)

    async def away(look: Any) -> Any:
        raise Unavailable("The database cannot be reached.")

    monkeypatch.setattr(session, "aread", away)
    with pytest.raises(OutcomeUnknown):
        await catalogue.add_document(WORKSPACE, "d", DIGEST, 10, None)


async def test_every_change_of_the_catalogue_is_looked_up(
    session: Session, catalogue: Catalogue
) -> None:
    def breaks() -> None:
        break_the_next_commit(session, arrives=True)

    breaks()
    made = await catalogue.add_configuration(WORKSPACE, "c", [FILE])
    breaks()
    assert await catalogue.put_file(WORKSPACE, made.id, FILE._replace(path="new.py")) is True
    breaks()
    await catalogue.delete_file(WORKSPACE, made.id, "new.py")
    breaks()
    await catalogue.replace_draft(WORKSPACE, made.id, [FILE._replace(path="other.py")])
    breaks()
    version = await catalogue.snapshot(WORKSPACE, made.id, "someone")
    assert await catalogue.find_version(WORKSPACE, version.id) == version
    breaks()
    await catalogue.delete_configuration(WORKSPACE, made.id)
    document = await catalogue.add_document(WORKSPACE, "d", DIGEST, 10, None)
    breaks()
    await catalogue.delete_document(WORKSPACE, document.id)
    assert await catalogue.digests_in_use() == set()


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_run_whose_commit_broke_leaves_its_version_its_build_and_both_jobs_or_nothing(
    session: Session, catalogue: Catalogue, arrives: bool
) -> None:
    kernel = Kernel(session, KernelSettings(queue_size=0))
    configuration = await catalogue.add_configuration(WORKSPACE, "c", [FILE])
    document = await catalogue.add_document(WORKSPACE, "d", DIGEST, 10, None)
    wanted = WantedRun(WORKSPACE, document.id, configuration.id)
    parts = await catalogue.parts_of_run(wanted, "someone", lambda version: version.digest)
    draft = parts.version
    run = submission(
        kind="normalize",
        payload='{"inputs": {}}',
        configuration_id=configuration.id,
        document_id=document.id,
        required=RequiredBuild(draft, draft.digest, LIMITS, retries=2, has_work=True),
    )
    break_the_next_commit(session, arrives=arrives)
    with pytest.raises(OutcomeUnknown):
        await kernel.submit(run)
    versions = await catalogue.list_versions(WORKSPACE, configuration.id, before=None, limit=9)
    builds = await catalogue.list_builds(WORKSPACE, before=None, limit=9)
    jobs = await kernel.read(lambda reading: reading.list_jobs(WORKSPACE, {}, None, 9))
    assert (len(versions), len(builds), len(jobs)) == ((1, 1, 2) if arrives else (0, 0, 0))


async def test_every_change_of_the_directory_is_looked_up(
    session: Session, directory: Directory
) -> None:
    def breaks() -> None:
        break_the_next_commit(session, arrives=True)

    breaks()
    secret = await asyncio.to_thread(directory.bootstrap)
    assert secret is not None
    assert await directory.find_key(key_digest(secret)) is not None
    breaks()
    workspace = await directory.add_workspace("new", "New")
    breaks()
    member = await directory.set_member(workspace.id, "ann", "viewer")
    breaks()
    key = await directory.add_key(workspace.id, member.user_id, "viewer", "laptop")
    breaks()
    assert (await directory.revoke_key(workspace.id, key.key.id)).revoked_at is not None
    breaks()
    await directory.remove_member(workspace.id, member.user_id)
    assert await directory.list_members(workspace.id) == []
    breaks()
    assert await directory.secret("links") == await directory.secret("links")
    breaks()
    second = await directory.add_operator_key(member.user_id, "second")
    breaks()
    await directory.revoke_operator_key(second.key.id)
    sessions = directory.user_sessions()
    breaks()
    link = await asyncio.to_thread(sessions.make_link, 60)
    breaks()
    assert isinstance(await sessions.begin_by_link(link, ""), NewUserSession)
    breaks()
    new = await sessions.begin(secret, "")
    breaks()
    assert await sessions.touch(new.session) == new.session
    breaks()
    await sessions.end(new.session.id)
    breaks()
    await sessions.end_all_of_key(new.session.key_id)
    breaks()
    await sessions.end_all_of_user(new.session.user_id)
    assert await sessions.list_all() == []


async def test_every_change_of_the_agents_is_looked_up(session: Session) -> None:
    agents = Agents(session)

    def breaks() -> None:
        break_the_next_commit(session, arrives=True)

    breaks()
    new = await agents.enrol("gpu-1")
    breaks()
    assert new.code is not None
    traded = await agents.trade(new.code)
    breaks()
    await agents.record_use([key_digest(traded.key)])
    breaks()
    await agents.rotate("gpu-1")
    breaks()
    assert (await agents.revoke("gpu-1")).revoked_at is not None


# --- a session at work ----------------------------------------------------------------------------


async def test_uploads_and_jobs_of_two_processes_never_wait_for_each_other(
    sql_database: SqlDatabase, clock: ManualClock
) -> None:
    sessions = [sql_database.open(clock) for _ in range(2)]
    kernels = [Kernel(one, KernelSettings(queue_size=1000)) for one in sessions]
    catalogues = [Catalogue(one) for one in sessions]

    def both(number: int) -> list[Any]:
        add = catalogues[number % 2].add_document
        return [
            add(WORKSPACE, f"d{number}", f"sha256:{number:064}", 10, None, quota_bytes=10**6),
            kernels[number % 2].submit(submission(target_id=f"t{number % 3}")),
        ]

    calls: list[Any] = [call for number in range(40) for call in both(number)]
    async with asyncio.timeout(30):
        await asyncio.gather(*calls)
    assert await catalogues[0].stored_bytes(WORKSPACE) == 400
    assert (
        len(await kernels[1].read(lambda reading: reading.list_jobs(WORKSPACE, {}, None, 99))) == 40
    )

"""Documents, drafts and versions are the same on every database."""

import asyncio
import json
from collections.abc import Callable

import pytest
from tests.databases import WORKSPACE, SqlDatabase

from ade.clock import ManualClock
from ade.domain.errors import (
    AdeError,
    Conflict,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    PreconditionFailed,
    StorageFull,
)
from ade.store.library import ABSENT, DRAFT_BYTES_MAX, FILES_MAX, File, Library, manifest_digest

OTHER = "0198b000-0000-7000-8000-000000000002"
Open = Callable[[], Library]


def digest(name: str) -> str:
    """Name some bytes that nobody needs."""
    return "sha256:" + name.encode().hex().rjust(64, "0")


def file(path: str, content: str = "x", size: int = 10) -> File:
    """Make a file."""
    return File(path, digest(content), size)


async def add(library: Library, content: str = "x", size: int = 10, quota: int = 0) -> str:
    """Add a document; return its id."""
    made = await library.add_document(
        WORKSPACE, f"{content}.csv", digest(content), size, None, quota_bytes=quota
    )
    return made.id


# --- documents ------------------------------------------------------------------------------------


async def test_documents_are_listed_newest_first(library: Library, clock: ManualClock) -> None:
    made = []
    for number in range(5):
        made.append(await add(library, str(number)))
        clock.advance(1)
    found = await library.list_documents(WORKSPACE, before=None, limit=3)
    assert [one.id for one in found] == made[:1:-1]
    rest = await library.list_documents(WORKSPACE, before=found[-1].id, limit=3)
    assert [one.id for one in rest] == made[1::-1]
    assert await library.list_documents(OTHER, before=None, limit=3) == []


async def test_a_deleted_document_is_out_of_sight(library: Library) -> None:
    made = await add(library)
    assert (await library.find_document(WORKSPACE, made.upper())).id == made
    await library.delete_document(WORKSPACE, made)
    with pytest.raises(NotFound):
        await library.find_document(WORKSPACE, made)
    with pytest.raises(NotFound):
        await library.delete_document(WORKSPACE, made)
    assert (await library.find_document(WORKSPACE, made, deleted_too=True)).deleted_at is not None
    assert await library.digests_in_use() == set()


async def test_what_is_no_id_names_nothing(library: Library) -> None:
    for name in ("", "nope", "0" * 36, "\0", "a" * 500):
        for looked in (
            library.find_document(WORKSPACE, name),
            library.find_configuration(WORKSPACE, name),
            library.draft(WORKSPACE, name),
            library.find_version(WORKSPACE, name),
            library.snapshot(WORKSPACE, name, "me"),
            library.put_file(WORKSPACE, name, file("a")),
        ):
            with pytest.raises(NotFound):
                await looked


# --- quota ----------------------------------------------------------------------------------------


async def test_the_same_bytes_count_once(library: Library) -> None:
    await add(library, "a", 70)
    await add(library, "a", 70, quota=100)
    assert await library.stored_bytes(WORKSPACE) == 70
    with pytest.raises(StorageFull):
        await add(library, "b", 31, quota=100)
    assert await library.stored_bytes(WORKSPACE) == 70
    kept = await add(library, "c", 30, quota=100)
    await library.delete_document(WORKSPACE, kept)
    assert await library.stored_bytes(WORKSPACE) == 70
    assert await library.stored_bytes(OTHER) == 0


async def test_drafts_and_versions_count_until_their_configuration_is_deleted(
    library: Library,
) -> None:
    config = (await library.add_configuration(WORKSPACE, "c", [file("a", "1", 10)])).id
    await library.put_file(WORKSPACE, config, file("b", "1", 10))
    assert await library.stored_bytes(WORKSPACE) == 10
    await library.snapshot(WORKSPACE, config, "me")
    await library.put_file(WORKSPACE, config, file("a", "2", 20))
    await library.put_file(WORKSPACE, config, file("b", "2", 20))
    assert await library.stored_bytes(WORKSPACE) == 30
    await library.snapshot(WORKSPACE, config, "me")
    await library.replace_draft(WORKSPACE, config, [])
    assert await library.stored_bytes(WORKSPACE) == 30
    with pytest.raises(StorageFull):
        await library.put_file(WORKSPACE, config, file("z", "3", 71), quota_bytes=100)
    assert await library.draft(WORKSPACE, config) == []
    with pytest.raises(StorageFull):
        await library.add_configuration(WORKSPACE, "d", [file("z", "3", 71)], quota_bytes=100)
    assert len(await library.list_configurations(WORKSPACE, before=None, limit=9)) == 1
    await library.delete_configuration(WORKSPACE, config)
    assert await library.stored_bytes(WORKSPACE) == 0
    assert await library.digests_in_use() == set()


async def test_a_quota_is_exact_however_many_upload_at_once(open_library: Open) -> None:
    libraries = [open_library() for _ in range(4)]
    tries = [add(libraries[n % 4], f"many-{n}", 10, quota=100) for n in range(24)]
    came = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(one, StorageFull) for one in came) == 14
    assert await libraries[0].stored_bytes(WORKSPACE) == 100


# --- drafts ---------------------------------------------------------------------------------------


async def test_a_draft_is_edited_file_by_file(library: Library) -> None:
    made = await library.add_configuration(WORKSPACE, "c", [file("b"), file("a/b")])
    assert await library.put_file(WORKSPACE, made.id, file("B", "2")) is True
    assert await library.put_file(WORKSPACE, made.id, file("b", "3")) is False
    found = await library.draft(WORKSPACE, made.id)
    assert found == [file("B", "2"), file("a/b"), file("b", "3")]
    assert await library.find_file(WORKSPACE, made.id, "b") == file("b", "3")
    await library.delete_file(WORKSPACE, made.id, "a/b")
    for gone in (library.delete_file, library.find_file):
        with pytest.raises(NotFound):
            await gone(WORKSPACE, made.id, "a/b")
    await library.replace_draft(WORKSPACE, made.id, [file("c")])
    assert await library.draft(WORKSPACE, made.id) == [file("c")]


async def test_who_edits_may_say_what_it_believes_to_be_there(library: Library) -> None:
    config = (await library.add_configuration(WORKSPACE, "c", [])).id
    await library.put_file(WORKSPACE, config, file("a", "1"), only_if=ABSENT)
    await library.put_file(WORKSPACE, config, file("a", "2"), only_if=digest("1"))
    before = await library.draft(WORKSPACE, config)
    for change in (
        library.put_file(WORKSPACE, config, file("a", "3"), only_if=digest("1")),
        library.put_file(WORKSPACE, config, file("a", "3"), only_if=ABSENT),
        library.put_file(WORKSPACE, config, file("b", "3"), only_if=digest("1")),
        library.delete_file(WORKSPACE, config, "a", only_if=digest("1")),
        library.replace_draft(WORKSPACE, config, [], only_if=digest("1")),
    ):
        with pytest.raises(PreconditionFailed):
            await change
    assert await library.draft(WORKSPACE, config) == before
    await library.replace_draft(WORKSPACE, config, [], only_if=manifest_digest(before))
    assert await library.draft(WORKSPACE, config) == []


async def test_of_two_who_edit_the_same_file_one_is_told(open_library: Open) -> None:
    one, two = open_library(), open_library()
    config = (await one.add_configuration(WORKSPACE, "c", [file("a", "0")])).id
    came = await asyncio.gather(
        *(
            library.put_file(WORKSPACE, config, file("a", str(n)), only_if=digest("0"))
            for n, library in enumerate([one, two, one, two], 1)
        ),
        return_exceptions=True,
    )
    assert sorted(type(each).__name__ for each in came) == ["PreconditionFailed"] * 3 + ["bool"]


async def test_a_draft_has_limits(library: Library) -> None:
    config = (await library.add_configuration(WORKSPACE, "c", [])).id
    await library.put_file(WORKSPACE, config, file("a/b"))
    refused: list[tuple[type[AdeError], list[File]]] = [
        (InvalidRequest, [file("a"), file("a/b/c"), file("a/b")]),
        (Conflict, [file(f"f{n}") for n in range(FILES_MAX + 1)]),
        (PayloadTooLarge, [file("a", size=DRAFT_BYTES_MAX), file("b")]),
    ]
    for error, files in refused:
        with pytest.raises(error):
            await library.replace_draft(WORKSPACE, config, files)
    for clash in ("a", "a/b/c"):
        with pytest.raises(InvalidRequest):
            await library.put_file(WORKSPACE, config, file(clash))
    with pytest.raises(PayloadTooLarge):
        await library.put_file(WORKSPACE, config, file("c", size=DRAFT_BYTES_MAX))
    assert await library.draft(WORKSPACE, config) == [file("a/b")]


async def test_a_deleted_configuration_takes_no_changes(library: Library) -> None:
    config = (await library.add_configuration(WORKSPACE, "c", [file("a")])).id
    version = await library.snapshot(WORKSPACE, config, "me")
    await library.delete_configuration(WORKSPACE, config)
    for change in (
        library.put_file(WORKSPACE, config, file("b")),
        library.delete_file(WORKSPACE, config, "a"),
        library.replace_draft(WORKSPACE, config, []),
        library.snapshot(WORKSPACE, config, "me"),
        library.draft(WORKSPACE, config),
        library.delete_configuration(WORKSPACE, config),
        library.list_versions(WORKSPACE, config, before=None, limit=1),
    ):
        with pytest.raises(NotFound):
            await change
    assert await library.find_version(WORKSPACE, version.id) == version


# --- versions -------------------------------------------------------------------------------------


async def test_a_version_stays_as_it_was(library: Library) -> None:
    config = (await library.add_configuration(WORKSPACE, "c", [file("a", "1")])).id
    first = await library.snapshot(WORKSPACE, config, "me")
    assert (first.sequence, first.created_by) == (1, "me")
    assert first.digest == manifest_digest([file("a", "1")])
    await library.put_file(WORKSPACE, config, file("a", "2"))
    second = await library.snapshot(WORKSPACE, config, "me")
    assert second.sequence == 2
    assert (await library.find_version(WORKSPACE, first.id)).files == [file("a", "1")]
    assert await library.find_sequence(WORKSPACE, config, 2) == second
    for missing in (3, 0, -1):
        with pytest.raises(NotFound):
            await library.find_sequence(WORKSPACE, config, missing)
    await library.put_file(WORKSPACE, config, file("a", "1"))
    assert await library.snapshot(WORKSPACE, config, "someone else") == first
    assert json.loads(first.manifest) == [["a", digest("1"), 10]]


async def test_pages_of_versions(library: Library) -> None:
    config = (await library.add_configuration(WORKSPACE, "c", [])).id
    for n in range(4):
        await library.put_file(WORKSPACE, config, file("a", str(n)))
        await library.snapshot(WORKSPACE, config, "me")
    found = await library.list_versions(WORKSPACE, config, before=None, limit=3)
    assert [one.sequence for one in found] == [4, 3, 2]
    rest = await library.list_versions(WORKSPACE, config, before=found[-1].id, limit=3)
    assert [one.sequence for one in rest] == [1]


async def test_many_snapshots_of_one_draft_are_one_version(open_library: Open) -> None:
    libraries = [open_library() for _ in range(4)]
    config = (await libraries[0].add_configuration(WORKSPACE, "c", [file("a")])).id
    came = await asyncio.gather(
        *(libraries[n % 4].snapshot(WORKSPACE, config, "me") for n in range(40))
    )
    assert len({version.id for version in came}) == 1
    assert len(await libraries[0].list_versions(WORKSPACE, config, before=None, limit=9)) == 1


async def test_versions_made_at_once_have_numbers_of_their_own(open_library: Open) -> None:
    libraries = [open_library() for _ in range(3)]
    config = (await libraries[0].add_configuration(WORKSPACE, "c", [])).id

    async def edit(n: int) -> None:
        library = libraries[n % 3]
        await library.put_file(WORKSPACE, config, file("a", f"v{n}"))
        await library.snapshot(WORKSPACE, config, "me")

    await asyncio.gather(*(edit(n) for n in range(12)))
    found = await libraries[0].list_versions(WORKSPACE, config, before=None, limit=50)
    assert [one.sequence for one in found] == list(range(len(found), 0, -1))
    assert len({one.digest for one in found}) == len(found)


async def test_what_is_in_use_is_what_someone_may_still_read(library: Library) -> None:
    config = (await library.add_configuration(WORKSPACE, "c", [file("a", "draft-1")])).id
    await library.snapshot(WORKSPACE, config, "me")
    await library.put_file(WORKSPACE, config, file("a", "draft-2"))
    document = await add(library, "document")
    used = await library.digests_in_use()
    assert used == {digest("draft-1"), digest("draft-2"), digest("document")}
    await library.delete_document(WORKSPACE, document)
    assert await library.digests_in_use() == {digest("draft-1"), digest("draft-2")}


@pytest.mark.parametrize("build_status", ["queued", "ready"])
async def test_a_job_that_waits_keeps_what_was_deleted(
    sql_database: SqlDatabase, library: Library, build_status: str
) -> None:
    config = (await library.add_configuration(WORKSPACE, "c", [file("a", "code")])).id
    version = await library.snapshot(WORKSPACE, config, "me")
    document = await add(library, "document")
    build = await library.ensure_build(version, "sha256:f")
    job = OTHER
    if build_status == "ready":
        with sql_database.connect() as connection:
            connection.exec_driver_sql(
                "UPDATE builds SET status = 'ready', finished_at = 1"  # nobody needs its files
            )
    sql_database.insert(
        "requests",
        workspace_id=WORKSPACE,
        id=job,
        kind="normalize",
        priority="normal",
        configuration_id=config,
        document_id=document,
        build_id=build.id,
        submitted_by="me",
        submitted_at=1,
        limits="{}",
        payload="{}",
    )
    sql_database.insert(
        "jobs",
        workspace_id=WORKSPACE,
        id=job,
        pool="local",
        status="queued",
        eligible=0,
        rank=1,
        holds_lane=0,
        fence=0,
        retries_left=0,
        event_seq=0,
        timeout_ms=1,
        history="[]",
    )
    await library.delete_configuration(WORKSPACE, config)
    await library.delete_document(WORKSPACE, document)
    assert await library.digests_in_use() == {digest("code"), digest("document")}
    with sql_database.connect() as connection:
        connection.exec_driver_sql("UPDATE jobs SET status = 'succeeded', finished_at = 2")
    left = {digest("code")} if build_status == "queued" else set()
    assert await library.digests_in_use() == left

"""Documents, drafts and versions are the same on every database."""

import asyncio
import json
from collections.abc import Callable

import pytest
from tests.databases import WORKSPACE
from tests.store.acts import LIMITS, Acts

from ade.app.catalogue import Catalogue
from ade.clock import ManualClock
from ade.domain.configuration import ABSENT, DRAFT_BYTES_MAX, FILES_MAX, manifest_digest
from ade.domain.errors import (
    AdeError,
    Conflict,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    PreconditionFailed,
    StorageFull,
)
from ade.kernel import Kernel
from ade.stages.builds import RequiredBuild
from ade.store.rows import File
from ade.store.session import Session

OTHER = "0198b000-0000-7000-8000-000000000002"
Open = Callable[[], Catalogue]


def digest(name: str) -> str:
    """Name some unneeded bytes."""
    return "sha256:" + name.encode().hex().rjust(64, "0")


def file(path: str, content: str = "x", size: int = 10) -> File:
    """Make a file."""
    return File(path, digest(content), size)


async def add(catalogue: Catalogue, content: str = "x", size: int = 10, quota: int = 0) -> str:
    """Add a document; return its id."""
    made = await catalogue.add_document(
        WORKSPACE, f"{content}.csv", digest(content), size, None, quota_bytes=quota
    )
    return made.id


# --- documents ------------------------------------------------------------------------------------


async def test_documents_are_listed_newest_first(catalogue: Catalogue, clock: ManualClock) -> None:
    made = []
    for number in range(5):
        made.append(await add(catalogue, str(number)))
        clock.advance(1)
    found = await catalogue.list_documents(WORKSPACE, before=None, limit=3)
    assert [one.id for one in found] == made[:1:-1]
    rest = await catalogue.list_documents(WORKSPACE, before=found[-1].id, limit=3)
    assert [one.id for one in rest] == made[1::-1]
    assert await catalogue.list_documents(OTHER, before=None, limit=3) == []


async def test_a_deleted_document_is_out_of_sight(catalogue: Catalogue) -> None:
    made = await add(catalogue)
    assert (await catalogue.find_document(WORKSPACE, made.upper())).id == made
    await catalogue.delete_document(WORKSPACE, made)
    with pytest.raises(NotFound):
        await catalogue.find_document(WORKSPACE, made)
    with pytest.raises(NotFound):
        await catalogue.delete_document(WORKSPACE, made)
    assert (await catalogue.find_document(WORKSPACE, made, deleted_too=True)).deleted_at is not None
    assert await catalogue.digests_in_use() == set()


async def test_what_is_no_id_names_nothing(catalogue: Catalogue) -> None:
    for name in ("", "nope", "0" * 36, "\0", "a" * 500):
        for looked in (
            catalogue.find_document(WORKSPACE, name),
            catalogue.find_configuration(WORKSPACE, name),
            catalogue.draft(WORKSPACE, name),
            catalogue.find_version(WORKSPACE, name),
            catalogue.snapshot(WORKSPACE, name, "me"),
            catalogue.put_file(WORKSPACE, name, file("a")),
        ):
            with pytest.raises(NotFound):
                await looked


# --- quota ----------------------------------------------------------------------------------------


async def test_the_same_bytes_count_once(catalogue: Catalogue) -> None:
    await add(catalogue, "a", 70)
    await add(catalogue, "a", 70, quota=100)
    assert await catalogue.stored_bytes(WORKSPACE) == 70
    with pytest.raises(StorageFull):
        await add(catalogue, "b", 31, quota=100)
    assert await catalogue.stored_bytes(WORKSPACE) == 70
    kept = await add(catalogue, "c", 30, quota=100)
    await catalogue.delete_document(WORKSPACE, kept)
    assert await catalogue.stored_bytes(WORKSPACE) == 70
    assert await catalogue.stored_bytes(OTHER) == 0


async def test_drafts_and_versions_count_until_their_configuration_is_deleted(
    catalogue: Catalogue,
) -> None:
    config = (await catalogue.add_configuration(WORKSPACE, "c", [file("a", "1", 10)])).id
    await catalogue.put_file(WORKSPACE, config, file("b", "1", 10))
    assert await catalogue.stored_bytes(WORKSPACE) == 10
    await catalogue.snapshot(WORKSPACE, config, "me")
    await catalogue.put_file(WORKSPACE, config, file("a", "2", 20))
    await catalogue.put_file(WORKSPACE, config, file("b", "2", 20))
    assert await catalogue.stored_bytes(WORKSPACE) == 30
    await catalogue.snapshot(WORKSPACE, config, "me")
    await catalogue.replace_draft(WORKSPACE, config, [])
    assert await catalogue.stored_bytes(WORKSPACE) == 30
    with pytest.raises(StorageFull):
        await catalogue.put_file(WORKSPACE, config, file("z", "3", 71), quota_bytes=100)
    assert await catalogue.draft(WORKSPACE, config) == []
    with pytest.raises(StorageFull):
        await catalogue.add_configuration(WORKSPACE, "d", [file("z", "3", 71)], quota_bytes=100)
    assert len(await catalogue.list_configurations(WORKSPACE, before=None, limit=9)) == 1
    await catalogue.delete_configuration(WORKSPACE, config)
    assert await catalogue.stored_bytes(WORKSPACE) == 0
    assert await catalogue.digests_in_use() == set()


async def test_a_quota_is_exact_however_many_upload_at_once(open_catalogue: Open) -> None:
    catalogues = [open_catalogue() for _ in range(4)]
    tries = [add(catalogues[n % 4], f"many-{n}", 10, quota=100) for n in range(24)]
    came = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(one, StorageFull) for one in came) == 14
    assert await catalogues[0].stored_bytes(WORKSPACE) == 100


# --- drafts ---------------------------------------------------------------------------------------


async def test_a_draft_is_edited_file_by_file(catalogue: Catalogue) -> None:
    made = await catalogue.add_configuration(WORKSPACE, "c", [file("b"), file("a/b")])
    assert await catalogue.put_file(WORKSPACE, made.id, file("B", "2")) is True
    assert await catalogue.put_file(WORKSPACE, made.id, file("b", "3")) is False
    found = await catalogue.draft(WORKSPACE, made.id)
    assert found == [file("B", "2"), file("a/b"), file("b", "3")]
    assert await catalogue.find_file(WORKSPACE, made.id, "b") == file("b", "3")
    await catalogue.delete_file(WORKSPACE, made.id, "a/b")
    for gone in (catalogue.delete_file, catalogue.find_file):
        with pytest.raises(NotFound):
            await gone(WORKSPACE, made.id, "a/b")
    await catalogue.replace_draft(WORKSPACE, made.id, [file("c")])
    assert await catalogue.draft(WORKSPACE, made.id) == [file("c")]


async def test_who_edits_may_say_what_it_believes_to_be_there(catalogue: Catalogue) -> None:
    config = (await catalogue.add_configuration(WORKSPACE, "c", [])).id
    await catalogue.put_file(WORKSPACE, config, file("a", "1"), only_if=ABSENT)
    await catalogue.put_file(WORKSPACE, config, file("a", "2"), only_if=digest("1"))
    before = await catalogue.draft(WORKSPACE, config)
    for change in (
        catalogue.put_file(WORKSPACE, config, file("a", "3"), only_if=digest("1")),
        catalogue.put_file(WORKSPACE, config, file("a", "3"), only_if=ABSENT),
        catalogue.put_file(WORKSPACE, config, file("b", "3"), only_if=digest("1")),
        catalogue.delete_file(WORKSPACE, config, "a", only_if=digest("1")),
        catalogue.replace_draft(WORKSPACE, config, [], only_if=digest("1")),
    ):
        with pytest.raises(PreconditionFailed):
            await change
    assert await catalogue.draft(WORKSPACE, config) == before
    await catalogue.replace_draft(WORKSPACE, config, [], only_if=manifest_digest(before))
    assert await catalogue.draft(WORKSPACE, config) == []


async def test_of_two_edits_of_the_same_file_one_is_refused(open_catalogue: Open) -> None:
    one, two = open_catalogue(), open_catalogue()
    config = (await one.add_configuration(WORKSPACE, "c", [file("a", "0")])).id
    came = await asyncio.gather(
        *(
            catalogue.put_file(WORKSPACE, config, file("a", str(n)), only_if=digest("0"))
            for n, catalogue in enumerate([one, two, one, two], 1)
        ),
        return_exceptions=True,
    )
    assert sorted(type(each).__name__ for each in came) == ["PreconditionFailed"] * 3 + ["bool"]


async def test_a_draft_has_limits(catalogue: Catalogue) -> None:
    config = (await catalogue.add_configuration(WORKSPACE, "c", [])).id
    await catalogue.put_file(WORKSPACE, config, file("a/b"))
    refused: list[tuple[type[AdeError], list[File]]] = [
        (InvalidRequest, [file("a"), file("a/b/c"), file("a/b")]),
        (Conflict, [file(f"f{n}") for n in range(FILES_MAX + 1)]),
        (PayloadTooLarge, [file("a", size=DRAFT_BYTES_MAX), file("b")]),
    ]
    for error, files in refused:
        with pytest.raises(error):
            await catalogue.replace_draft(WORKSPACE, config, files)
    for clash in ("a", "a/b/c"):
        with pytest.raises(InvalidRequest):
            await catalogue.put_file(WORKSPACE, config, file(clash))
    with pytest.raises(PayloadTooLarge):
        await catalogue.put_file(WORKSPACE, config, file("c", size=DRAFT_BYTES_MAX))
    assert await catalogue.draft(WORKSPACE, config) == [file("a/b")]


async def test_a_deleted_configuration_takes_no_changes(catalogue: Catalogue) -> None:
    config = (await catalogue.add_configuration(WORKSPACE, "c", [file("a")])).id
    version = await catalogue.snapshot(WORKSPACE, config, "me")
    await catalogue.delete_configuration(WORKSPACE, config)
    for change in (
        catalogue.put_file(WORKSPACE, config, file("b")),
        catalogue.delete_file(WORKSPACE, config, "a"),
        catalogue.replace_draft(WORKSPACE, config, []),
        catalogue.snapshot(WORKSPACE, config, "me"),
        catalogue.draft(WORKSPACE, config),
        catalogue.delete_configuration(WORKSPACE, config),
        catalogue.list_versions(WORKSPACE, config, before=None, limit=1),
    ):
        with pytest.raises(NotFound):
            await change
    assert await catalogue.find_version(WORKSPACE, version.id) == version


# --- versions -------------------------------------------------------------------------------------


async def test_a_version_stays_as_it_was(catalogue: Catalogue) -> None:
    config = (await catalogue.add_configuration(WORKSPACE, "c", [file("a", "1")])).id
    first = await catalogue.snapshot(WORKSPACE, config, "me")
    assert (first.sequence, first.created_by) == (1, "me")
    assert first.digest == manifest_digest([file("a", "1")])
    await catalogue.put_file(WORKSPACE, config, file("a", "2"))
    second = await catalogue.snapshot(WORKSPACE, config, "me")
    assert second.sequence == 2
    assert (await catalogue.find_version(WORKSPACE, first.id)).files == [file("a", "1")]
    assert await catalogue.find_sequence(WORKSPACE, config, 2) == second
    for missing in (3, 0, -1):
        with pytest.raises(NotFound):
            await catalogue.find_sequence(WORKSPACE, config, missing)
    await catalogue.put_file(WORKSPACE, config, file("a", "1"))
    assert await catalogue.snapshot(WORKSPACE, config, "someone else") == first
    assert json.loads(first.manifest) == [["a", digest("1"), 10]]


async def test_pages_of_versions(catalogue: Catalogue) -> None:
    config = (await catalogue.add_configuration(WORKSPACE, "c", [])).id
    for n in range(4):
        await catalogue.put_file(WORKSPACE, config, file("a", str(n)))
        await catalogue.snapshot(WORKSPACE, config, "me")
    found = await catalogue.list_versions(WORKSPACE, config, before=None, limit=3)
    assert [one.sequence for one in found] == [4, 3, 2]
    rest = await catalogue.list_versions(WORKSPACE, config, before=found[-1].id, limit=3)
    assert [one.sequence for one in rest] == [1]


async def test_many_snapshots_of_one_draft_are_one_version(open_catalogue: Open) -> None:
    catalogues = [open_catalogue() for _ in range(4)]
    config = (await catalogues[0].add_configuration(WORKSPACE, "c", [file("a")])).id
    came = await asyncio.gather(
        *(catalogues[n % 4].snapshot(WORKSPACE, config, "me") for n in range(40))
    )
    assert len({version.id for version in came}) == 1
    assert len(await catalogues[0].list_versions(WORKSPACE, config, before=None, limit=9)) == 1


async def test_versions_made_at_once_have_numbers_of_their_own(open_catalogue: Open) -> None:
    catalogues = [open_catalogue() for _ in range(3)]
    config = (await catalogues[0].add_configuration(WORKSPACE, "c", [])).id

    async def edit(n: int) -> None:
        catalogue = catalogues[n % 3]
        await catalogue.put_file(WORKSPACE, config, file("a", f"v{n}"))
        await catalogue.snapshot(WORKSPACE, config, "me")

    await asyncio.gather(*(edit(n) for n in range(12)))
    found = await catalogues[0].list_versions(WORKSPACE, config, before=None, limit=50)
    assert [one.sequence for one in found] == list(range(len(found), 0, -1))
    assert len({one.digest for one in found}) == len(found)


async def test_what_is_in_use_is_what_someone_may_still_read(catalogue: Catalogue) -> None:
    config = (await catalogue.add_configuration(WORKSPACE, "c", [file("a", "draft-1")])).id
    await catalogue.snapshot(WORKSPACE, config, "me")
    await catalogue.put_file(WORKSPACE, config, file("a", "draft-2"))
    document = await add(catalogue, "document")
    used = await catalogue.digests_in_use()
    assert used == {digest("draft-1"), digest("draft-2"), digest("document")}
    await catalogue.delete_document(WORKSPACE, document)
    assert await catalogue.digests_in_use() == {digest("draft-1"), digest("draft-2")}


@pytest.mark.parametrize("has_work", [True, False])
async def test_a_job_that_waits_keeps_what_was_deleted(
    open_session: Callable[[], Session], clock: ManualClock, has_work: bool
) -> None:
    session = open_session()
    catalogue, acts = Catalogue(session), Acts(Kernel(session), clock)
    config = (await catalogue.add_configuration(WORKSPACE, "c", [file("a", "code")])).id
    version = await catalogue.snapshot(WORKSPACE, config, "me")
    document = await add(catalogue, "document")
    acts.submit(
        kind="normalize",
        payload='{"inputs": {}}',
        configuration_id=config,
        document_id=document,
        required=RequiredBuild(version, "sha256:f", LIMITS, retries=0, has_work=has_work),
    )
    await catalogue.delete_configuration(WORKSPACE, config)
    await catalogue.delete_document(WORKSPACE, document)
    kept = {digest("code"), digest("document")}
    for _ in range(2 if has_work else 1):  # the build, if there is one, then the run
        assert await catalogue.digests_in_use() == kept
        (claim,) = acts.claim()
        assert await catalogue.digests_in_use() == kept
        acts.succeed(claim, outputs={"result_json": {"environment": None}})
    assert await catalogue.digests_in_use() == set()


async def test_a_build_that_waits_keeps_its_files_although_its_run_was_cancelled(
    open_session: Callable[[], Session], clock: ManualClock
) -> None:
    session = open_session()
    catalogue, acts = Catalogue(session), Acts(Kernel(session), clock)
    config = (await catalogue.add_configuration(WORKSPACE, "c", [file("a", "code")])).id
    version = await catalogue.snapshot(WORKSPACE, config, "me")
    run = acts.submit(
        kind="normalize",
        payload='{"inputs": {}}',
        configuration_id=config,
        document_id=await add(catalogue, "document"),
        required=RequiredBuild(version, "sha256:f", LIMITS, retries=0, has_work=True),
    )
    acts.cancel(run)
    await catalogue.delete_configuration(WORKSPACE, config)
    assert digest("code") in await catalogue.digests_in_use()
    acts.succeed(acts.claim()[0], outputs={"result_json": {"environment": None}})
    assert digest("code") not in await catalogue.digests_in_use()

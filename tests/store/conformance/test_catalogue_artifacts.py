"""Artifacts in the catalogue: found by id, by digest in their own workspace only, and counted."""

from dataclasses import replace

import pytest
from tests.databases import WORKSPACE, SqlDatabase
from tests.store.acts import Acts, success
from tests.store.conformance.test_artifacts import FILE

from ade.app.catalogue import Catalogue
from ade.clock import ManualClock
from ade.domain.errors import NotFound
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.stages.retain import Retain

OTHER = "0198c000-0000-7000-8000-000000000002"
BIG = replace(FILE, size_bytes=100)


@pytest.fixture
def acts(sql_database: SqlDatabase, clock: ManualClock) -> Acts:
    """Act on a kernel that forgets ended jobs after a minute, on the catalogue's own database."""
    store = sql_database.open(clock)
    return Acts(Kernel(store, KernelSettings(queue_size=0, retain_seconds=60)), clock)


async def test_an_artifact_is_there_as_long_as_its_job(acts: Acts, catalogue: Catalogue) -> None:
    claim = acts.start()
    with pytest.raises(NotFound):
        await catalogue.find_artifact(FILE.id)
    acts.finish(claim, replace(success(), artifacts=(BIG,)))
    found = await catalogue.find_artifact(FILE.id.upper())
    assert (found.workspace_id, found.job_id, found.digest) == (WORKSPACE, claim.id, FILE.digest)
    assert await catalogue.digests_in_use() == {FILE.digest}
    assert await catalogue.stored_bytes(WORKSPACE) == 100
    acts.wait(61)
    acts.kernel.now.retain(Retain(WORKSPACE))
    assert await catalogue.digests_in_use() == set()
    assert await catalogue.stored_bytes(WORKSPACE) == 0
    for name in (FILE.id, "no identifier"):
        with pytest.raises(NotFound):
            await catalogue.find_artifact(name)


async def test_bytes_are_a_workspaces_own(acts: Acts, catalogue: Catalogue) -> None:
    with pytest.raises(NotFound):
        await catalogue.check_bytes(WORKSPACE, FILE.digest)
    acts.finish(acts.start(), replace(success(), artifacts=(BIG,)))
    await catalogue.check_bytes(WORKSPACE, FILE.digest)
    with pytest.raises(NotFound):
        await catalogue.check_bytes(OTHER, FILE.digest)


async def test_the_bytes_of_a_deleted_document_are_unreferenced(catalogue: Catalogue) -> None:
    added = await catalogue.add_document(WORKSPACE, "d", FILE.digest, 1, None)
    await catalogue.check_bytes(WORKSPACE, FILE.digest)
    await catalogue.delete_document(WORKSPACE, added.id)
    with pytest.raises(NotFound):
        await catalogue.check_bytes(WORKSPACE, FILE.digest)


async def test_the_same_bytes_count_once(acts: Acts, catalogue: Catalogue) -> None:
    await catalogue.add_document(WORKSPACE, "d", FILE.digest, 100, None)
    acts.finish(acts.start(), replace(success(), artifacts=(BIG,)))
    assert await catalogue.stored_bytes(WORKSPACE) == 100

"""The activation folder: whole, bounded, and of one holder."""

import pytest
from tests.databases import WORKSPACE

from ade.environments.activation import CUT, LOG_CHARS_MAX, ActivationFolder
from ade.settings import Settings
from ade.store.rows import Version


@pytest.fixture
def folder(settings: Settings) -> ActivationFolder:
    return ActivationFolder(Version(WORKSPACE, "v", "c", 7, "sha256:a", "[]", "me", 0), settings)


def test_it_lies_where_the_seed_says(folder: ActivationFolder, settings: Settings) -> None:
    assert folder.path == settings.storage_data_dir / "configs" / "c" / "7" / "activation"


def test_nothing_was_activated_yet(folder: ActivationFolder) -> None:
    assert (folder.result(), folder.hooks(), folder.log()) == (None, None, None)


def test_a_log_can_be_read_while_it_is_written(folder: ActivationFolder) -> None:
    log = folder.begin()
    log.say("one")
    assert folder.log() == "one\n"
    log.close()


def test_a_worker_that_lost_the_lease_writes_to_an_unused_file(folder: ActivationFolder) -> None:
    lost = folder.begin()
    lost.say("old")
    held = folder.begin()
    held.say("new")
    lost.say("older")
    assert folder.log() == "new\n"
    for log in (lost, held):
        log.close()


def test_a_log_has_an_end(folder: ActivationFolder) -> None:
    log = folder.begin()
    for _ in range(3):
        log.say("x" * (LOG_CHARS_MAX // 2))
    log.close()
    written = folder.log() or ""
    assert len(written) < LOG_CHARS_MAX + 100
    assert written.endswith(f"{CUT}\n")


def test_a_new_activation_forgets_the_one_before(folder: ActivationFolder) -> None:
    folder.begin().close()
    folder.finish({"status": "ready"}, ["greeting==1.0"], {"annotations": []})
    assert folder.result() == {"status": "ready"}
    assert (folder.path / "packages.txt").read_text() == "greeting==1.0\n"
    folder.begin().close()
    assert (folder.result(), folder.hooks()) == (None, None)
    assert not (folder.path / "packages.txt").exists()

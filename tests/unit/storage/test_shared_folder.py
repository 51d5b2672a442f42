import errno
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ade.domain.errors import InvalidRequest, PayloadTooLarge, UnsafePath
from ade.storage.shared_folder import (
    CONFIG_BYTES_MAX,
    LAYOUT,
    OWNER,
    SharedFolder,
    choose_shared_folder,
    config_parts,
)

JOB = "01900000-0000-7000-8000-000000000001"


@pytest.fixture
def shared(tmp_path: Path) -> SharedFolder:
    folder = SharedFolder(tmp_path / "shared")
    folder.create(private=False)
    return folder


def outside(shared: SharedFolder) -> Path:
    secret = shared.root.parent / "secret"
    secret.mkdir(exist_ok=True)
    (secret / "secret.json").write_text('"leaked"')
    return secret


def job_folder(shared: SharedFolder) -> Path:
    return shared.root / "jobs" / JOB


def test_it_has_the_layout_of_the_contract(shared: SharedFolder) -> None:
    assert sorted(path.name for path in shared.root.iterdir()) == sorted(LAYOUT)
    shared.create(private=False)  # a second time is harmless


def test_json_is_replaced_and_leaves_nothing_else_behind(shared: SharedFolder) -> None:
    for number in range(3):
        shared.write_job_file(JOB, "status.json", {"status": number, "name": "é"})
    assert json.loads((job_folder(shared) / "status.json").read_text()) == {
        "status": 2,
        "name": "é",
    }
    assert [path.name for path in job_folder(shared).iterdir()] == ["status.json"]


def test_a_write_that_fails_leaves_the_earlier_file(
    shared: SharedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.write_registry({"a": 1})

    def fail(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match="Input/output"):
        shared.write_registry({"a": 2})
    assert shared.read_registry() == {"a": 1}
    assert not [path for path in shared.root.iterdir() if path.name.startswith(".unf")]


def test_the_modes_follow_the_umask(shared: SharedFolder) -> None:
    before = os.umask(0o002)
    try:
        shared.write_job_file(JOB, "status.json", {})
    finally:
        os.umask(before)
    assert stat.S_IMODE(job_folder(shared).stat().st_mode) == 0o775
    assert stat.S_IMODE((job_folder(shared) / "status.json").stat().st_mode) == 0o664


def test_an_entry_of_the_queue_comes_and_goes(shared: SharedFolder) -> None:
    shared.write_queue_entry(JOB, {"job_id": JOB})
    assert (shared.root / "queue" / f"{JOB}.json").exists()
    shared.remove_queue_entry(JOB)
    shared.remove_queue_entry(JOB)
    assert not list((shared.root / "queue").iterdir())


@pytest.mark.parametrize("job_id", ["", "..", "../..", "/etc", "a/b", "job", f"{JOB}/..", "a\0b"])
def test_only_a_uuid_names_the_files_of_a_job(shared: SharedFolder, job_id: str) -> None:
    for call in (
        lambda: shared.write_job_file(job_id, "status.json", {}),
        lambda: shared.write_queue_entry(job_id, {}),
        lambda: shared.read_progress(job_id),
        lambda: shared.read_result(job_id, 10),
        lambda: shared.delete_job(job_id),
    ):
        with pytest.raises(UnsafePath, match="UUID"):
            call()


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "configs",
        "configs/",
        "../secret/secret.json",
        "configs/../../secret",
        "a/../b.yaml",
        "/etc/passwd",
        "a\0.yaml",
        "a\n.yaml",
        "..\\a.yaml",
        "x" * 300,
        "/".join("x" * 400),
    ],
)
def test_hostile_paths_of_configurations_are_refused(shared: SharedFolder, path: str) -> None:
    with pytest.raises(UnsafePath):
        shared.read_config(path)
    with pytest.raises(UnsafePath):
        shared.create_config(path, b"x")


def test_a_configuration_may_be_in_a_folder_below(shared: SharedFolder) -> None:
    assert config_parts("configs/a/b.yaml") == config_parts("a//./b.yaml") == ("a", "b.yaml")
    shared.create_config("a/b.yaml", b"x: 1")
    assert shared.read_config("configs/a/b.yaml") == b"x: 1"
    assert shared.read_config("configs/c.yaml") is None


def test_a_link_to_a_configuration_is_followed_and_one_that_leads_out_is_not(
    shared: SharedFolder,
) -> None:
    shared.create_config("real.yaml", b"x")
    (shared.root / "configs" / "inner.yaml").symlink_to("real.yaml")
    (shared.root / "configs" / "out.yaml").symlink_to(outside(shared) / "secret.json")
    (shared.root / "configs" / "outer").symlink_to(outside(shared))
    assert shared.read_config("inner.yaml") == b"x"
    for path in ("out.yaml", "outer/secret.json"):
        with pytest.raises(UnsafePath, match="leads out"):
            shared.read_config(path)
    with pytest.raises(UnsafePath, match="symbolic link"):
        shared.create_config("outer/new.yaml", b"x")
    assert not (outside(shared) / "new.yaml").exists()


def test_a_folder_of_configurations_that_became_a_link_is_refused(shared: SharedFolder) -> None:
    (shared.root / "configs").rmdir()
    (shared.root / "configs").symlink_to(outside(shared))
    with pytest.raises(UnsafePath):
        shared.read_config("secret.json")


def test_a_large_configuration_is_refused(shared: SharedFolder) -> None:
    shared.create_config("a.yaml", b"x" * (CONFIG_BYTES_MAX + 1))
    with pytest.raises(PayloadTooLarge, match=r"a\.yaml"):
        shared.read_config("a.yaml")


def test_progress_and_result_are_read(shared: SharedFolder) -> None:
    assert shared.read_progress(JOB) is None
    for folder, name in (("progress", "progress.json"), ("results", "result.json")):
        (job_folder(shared) / folder).mkdir(parents=True)
        (job_folder(shared) / folder / name).write_text('{"a": NaN, "b": 1, "c": -1e999}')
    assert shared.read_progress(JOB) == {"a": None, "b": 1, "c": None}
    assert shared.read_result(JOB, 100) == {"a": None, "b": 1, "c": None}
    with pytest.raises(PayloadTooLarge):
        shared.read_result(JOB, 5)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\xff"])
def test_what_is_no_json_is_said_so(shared: SharedFolder, text: str) -> None:
    (job_folder(shared) / "progress").mkdir(parents=True)
    (job_folder(shared) / "progress" / "progress.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidRequest, match="not a JSON document"):
        shared.read_progress(JOB)


def test_links_that_a_worker_left_are_not_followed(shared: SharedFolder) -> None:
    secret = outside(shared)
    (job_folder(shared) / "progress").mkdir(parents=True)
    (job_folder(shared) / "progress" / "progress.json").symlink_to(secret / "secret.json")
    (job_folder(shared) / "results").symlink_to(secret)
    (secret / "result.json").write_text('"leaked"')
    (job_folder(shared) / "status.json").symlink_to(secret / "secret.json")
    with pytest.raises(UnsafePath, match="symbolic link"):
        shared.read_progress(JOB)
    with pytest.raises(UnsafePath, match="symbolic link"):
        shared.read_result(JOB, 100)
    shared.write_job_file(JOB, "status.json", {"status": "running"})  # the link is replaced
    assert (secret / "secret.json").read_text() == '"leaked"'
    assert not (job_folder(shared) / "status.json").is_symlink()


def test_a_pipe_in_place_of_a_file_holds_nobody_up(shared: SharedFolder) -> None:
    (job_folder(shared) / "progress").mkdir(parents=True)
    os.mkfifo(job_folder(shared) / "progress" / "progress.json")
    with pytest.raises(UnsafePath):
        shared.read_progress(JOB)


def test_deleting_a_job_follows_no_link(shared: SharedFolder) -> None:
    secret = outside(shared)
    (job_folder(shared) / "logs").mkdir(parents=True)
    (job_folder(shared) / "logs" / "out").symlink_to(secret)
    shared.write_queue_entry(JOB, {})
    shared.delete_job(JOB)
    shared.delete_job(JOB)
    assert not job_folder(shared).exists()
    job_folder(shared).symlink_to(secret)
    shared.delete_job(JOB)
    assert not job_folder(shared).is_symlink()
    assert (secret / "secret.json").exists()


def test_a_job_is_deleted_however_deep_its_folders_are(shared: SharedFolder) -> None:
    job_folder(shared).mkdir(parents=True)
    (job_folder(shared) / "beside").mkdir()
    (job_folder(shared) / "beside" / "file").write_text("x")
    folder = os.open(job_folder(shared), os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("in", dir_fd=folder)
        inner = os.open("in", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    try:
        shared.delete_job(JOB)
        assert not job_folder(shared).exists()
    finally:  # pytest could not delete it either
        subprocess.run(["rm", "-rf", str(job_folder(shared))], check=True)


# --- the choice of the root -----------------------------------------------------------------------


def choose(tmp_path: Path, owner: str = "one", *, is_explicit: bool = True) -> SharedFolder:
    return choose_shared_folder(
        tmp_path / "wanted", tmp_path / owner / "shared", owner, is_explicit=is_explicit
    )


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_wanted_folder_is_used_and_said(tmp_path: Path) -> None:
    with capture_logs() as logs:
        assert choose(tmp_path).root == tmp_path / "wanted"
        assert choose(tmp_path).root == tmp_path / "wanted"
    assert [line["path"] for line in logs] == [str(tmp_path / "wanted")] * 2


def test_a_folder_that_nobody_asked_for_is_private(tmp_path: Path) -> None:
    assert mode(choose(tmp_path, is_explicit=False).root) == 0o700


def test_a_folder_that_a_setting_names_has_the_modes_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        assert mode(choose(tmp_path).root) == 0o755
    finally:
        os.umask(before)


def test_without_a_usable_folder_the_one_in_the_data_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "wanted").write_text("in the way")
    with capture_logs() as logs:
        folder = choose(tmp_path)
    assert folder.root == tmp_path / "one" / "shared"
    assert mode(folder.root) == 0o700
    [line] = logs
    assert line["log_level"] == "warning"
    assert line["instead_of"] == str(tmp_path / "wanted")
    assert line["reason"]


def test_a_folder_of_another_database_is_left_alone(tmp_path: Path) -> None:
    choose(tmp_path, "one")
    with capture_logs() as logs:
        assert choose(tmp_path, "two").root == tmp_path / "two" / "shared"
    assert OWNER in logs[0]["reason"]
    assert choose(tmp_path, "two").root == tmp_path / "two" / "shared"
    assert choose(tmp_path, "one").root == tmp_path / "wanted"


# --- what is compared with the database -----------------------------------------------------------


def test_what_somebody_deleted_is_made_again(tmp_path: Path) -> None:
    folder = choose(tmp_path)
    shutil.rmtree(folder.root)
    folder.restore()
    assert {*LAYOUT, OWNER} == {path.name for path in folder.root.iterdir()}
    assert choose(tmp_path, "two").root != folder.root


def test_a_private_folder_is_private_again(tmp_path: Path) -> None:
    folder = choose(tmp_path, is_explicit=False)
    shutil.rmtree(folder.root)
    folder.restore()
    assert mode(folder.root) == 0o700


def test_the_entries_of_the_queue_are_jobs_only(shared: SharedFolder) -> None:
    shared.write_queue_entry(JOB, {})
    for name in ("notes.json", f"{JOB}.txt", f".unfinished-{JOB}.json"):
        (shared.root / "queue" / name).write_text("{}")
    assert shared.queue_entries() == {JOB}


def test_jobs_without_a_status_are_found(shared: SharedFolder) -> None:
    other = JOB[:-1] + "2"
    shared.write_job_file(JOB, "status.json", {})
    assert shared.jobs_without_status([JOB, other]) == {other}
    assert not shared.has_registry()
    shared.write_registry({})
    assert shared.has_registry()


def test_a_configuration_is_created_once_and_whole(shared: SharedFolder) -> None:
    assert shared.create_config("a/b.yaml", b"first")
    assert not shared.create_config("a/b.yaml", b"second")
    assert shared.read_config("a/b.yaml") == b"first"
    assert [path.name for path in (shared.root / "configs" / "a").iterdir()] == ["b.yaml"]
    shared.remove_config("a/b.yaml")
    shared.remove_config("a/b.yaml")
    assert shared.read_config("a/b.yaml") is None


def test_a_configuration_is_created_on_a_disk_without_hard_links(
    shared: SharedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", link)
    assert shared.create_config("b.yaml", b"first")
    assert not shared.create_config("b.yaml", b"second")
    assert shared.read_config("b.yaml") == b"first"


def test_a_link_in_place_of_a_configuration_is_not_written_to(shared: SharedFolder) -> None:
    target = outside(shared) / "new.yaml"
    (shared.root / "configs" / "x.yaml").symlink_to(target)
    assert not shared.create_config("x.yaml", b"text")
    assert not target.exists()

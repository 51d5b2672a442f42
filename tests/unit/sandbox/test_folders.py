"""Folders that jobs wrote to are removed, also while something is still written to them."""

import os
import threading
from pathlib import Path

from ade.sandbox.folders import remove_tree


def test_a_folder_is_removed_while_a_killed_process_still_writes(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    is_writing, has_to_end = threading.Event(), threading.Event()

    def write() -> None:
        number = 0
        while not has_to_end.is_set():
            try:
                os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
            except FileNotFoundError:  # the folder is gone
                return
            number += 1
            is_writing.set()

    writer = threading.Thread(target=write)
    stopper = threading.Timer(0.05, has_to_end.set)
    writer.start()
    is_writing.wait()
    stopper.start()
    remove_tree(folder)
    has_to_end.set()
    writer.join()
    stopper.join()
    os.close(handle)
    assert not folder.exists()


def test_a_link_in_a_folder_is_removed_and_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("stays")
    folder = tmp_path / "scratch"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "link").symlink_to(kept)
    remove_tree(folder)
    assert not folder.exists()
    assert (kept / "file").read_text() == "stays"

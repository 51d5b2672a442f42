"""Names, packages and uploads."""

import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.client.script import json_reply, page, play

from ade.client import errors
from ade.client.core.names import find_id, is_id, local_file, segment
from ade.client.core.package_files import (
    NotAPackage,
    differences,
    pack,
    package_digest,
    read_folder,
    unpack,
    write_folder,
)
from ade.client.core.retry import RetryPolicy
from ade.client.core.uploads import FormBody, name_of, upload
from ade.domain.configuration import manifest_digest

POLICY = RetryPolicy()
ID = "01a1f4f7-0000-7000-8000-000000000000"


def found(wanted: str, *items: dict[str, str], noun: str = "document") -> str:
    """Look a name up in a list of one page."""
    call = find_id("/l", noun, wanted, POLICY)
    return str(play(call, page(*map(json.dumps, items))).result)


def document(name: str, digest: str = "d", number: int = 1) -> dict[str, str]:
    """Describe a document as a list does."""
    return {"document_id": f"{ID[:-1]}{number}", "name": name, "digest": digest}


def test_an_id_is_taken_as_it_is() -> None:
    assert is_id(ID)
    assert not is_id("a")
    assert play(find_id("/l", "document", ID, POLICY)).requests == []


def test_a_name_is_found_and_equal_documents_are_one() -> None:
    assert found("a.csv", document("a.csv")) == document("a.csv")["document_id"]
    newest = found("a.csv", document("a.csv", number=2), document("a.csv", number=1))
    assert newest.endswith("2")


def test_an_ambiguous_name_and_an_unknown_one() -> None:
    with pytest.raises(errors.AmbiguousName, match=f"{ID[:-1]}2"):
        found("a.csv", document("a.csv", "x", 1), document("a.csv", "y", 2))
    with pytest.raises(errors.NotFound, match=r"Did you mean 'a\.csv'"):
        found("a.cvs", document("a.csv"))
    with pytest.raises(errors.NotFound, match="in this workspace"):
        found("zzz", document("a.csv"))


def test_an_id_is_one_part_of_a_path() -> None:
    assert segment("a/b?c#d ä") == "a%2Fb%3Fc%23d%20%C3%A4"
    assert segment(ID) == ID
    for wrong in ("", ".", ".."):
        with pytest.raises(errors.NotFound):
            segment(wrong)


def test_a_path_is_not_a_name(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("x")
    assert local_file(file) == file
    assert local_file("no-such.csv") is None
    with pytest.raises(FileNotFoundError):
        local_file(tmp_path / "b.csv")
    with pytest.raises(FileNotFoundError):
        local_file("folder/b.csv")


# --- packages -------------------------------------------------------------------------------------


def test_a_package_is_what_an_author_wrote(tmp_path: Path) -> None:
    kept = {"config.toml": b"", "columns/a.py": b"A = 1\n"}
    left_out = (
        "__pycache__/a.pyc",
        ".git/HEAD",
        ".env",
        "columns/__pycache__/x",
        "b.pyc",
        "Thumbs.db",
    )
    for path, content in (*kept.items(), *((path, b"x") for path in left_out)):
        tmp_path.joinpath(path).parent.mkdir(exist_ok=True, parents=True)
        tmp_path.joinpath(path).write_bytes(content)
    tmp_path.joinpath("link.py").symlink_to("/etc/hostname")
    assert read_folder(tmp_path) == kept
    assert unpack(pack(kept)) == kept
    assert pack(kept) == pack(dict(reversed(kept.items())))


@dataclass(frozen=True)
class Stored:
    """A file as the server knows it."""

    path: str
    digest: str


def test_the_digest_is_that_of_the_server() -> None:
    files = {"b.py": b"1", "a/ä.py": b"2"}
    stored = [
        Stored(path, f"sha256:{hashlib.sha256(content).hexdigest()}")
        for path, content in files.items()
    ]
    assert package_digest(files) == manifest_digest(stored)


def test_no_folder_and_an_empty_one_are_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(NotAPackage):
            read_folder(folder)


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "."])
def test_nothing_is_written_outside_of_the_folder(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(NotAPackage):
        write_folder(folder, {path: b"x"})
    assert list(tmp_path.rglob("*")) == [folder]


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    tmp_path.joinpath("mine.txt").write_text("kept")
    assert write_folder(tmp_path, {"a.py": b"1", "b/c.py": b"2"}) == ["a.py", "b/c.py"]
    assert write_folder(tmp_path, {"a.py": b"1", "b/c.py": b"3"}) == ["b/c.py"]
    assert tmp_path.joinpath("mine.txt").read_text() == "kept"


def test_differences_are_a_unified_diff() -> None:
    lines = list(differences({"a": b"1\n", "b": b"x"}, {"a": b"2\n", "c": b"\xff"}, "old", "new"))
    text = "".join(lines)
    assert "--- old/a\n+++ new/a\n@@ -1 +1 @@\n-1\n+2\n" in text
    assert "--- old/b\n+++ /dev/null" in text
    assert "\\ No newline at end of file" in text
    assert "Binary files old/c and new/c differ" in text


# --- uploads --------------------------------------------------------------------------------------


def test_an_upload_is_sent_in_pieces_and_checked() -> None:
    told: list[tuple[int, int]] = []
    content = b"x" * 600_000
    form = FormBody(io.BytesIO(content), 'a"b.csv', "text/csv", lambda *sent: told.append(sent))
    sent = b"".join(form.pieces())
    assert len(sent) == form.size_bytes
    assert content in sent
    assert b'filename="a%22b.csv"' in sent
    assert told[-1] == (600_000, 600_000)
    assert len(told) > 1
    again = b"".join(form.pieces())
    assert again == sent

    right = json_reply(json.dumps({"document_id": ID, "digest": form.digest}))
    assert play(upload("/d", form, POLICY), right).result["document_id"] == ID
    wrong = json_reply(json.dumps({"document_id": ID, "digest": "sha256:0"}))
    with pytest.raises(errors.DigestMismatch):
        play(upload("/d", form, POLICY), wrong)


@pytest.mark.parametrize(("change", "word"), [(b"123456", "grew"), (b"12", "shrank")])
def test_a_file_that_changes_meanwhile_is_noticed(tmp_path: Path, change: bytes, word: str) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"1234")
    form = FormBody(file, "a.csv", "text/csv", None)
    file.write_bytes(change)
    with pytest.raises(errors.DigestMismatch, match=word):
        list(form.pieces())


def test_a_source_has_a_name(tmp_path: Path) -> None:
    assert name_of(tmp_path / "a.csv") == "a.csv"
    assert name_of(b"bytes") == "document"
    with open(tmp_path / "b.csv", "wb+") as file:
        assert name_of(file) == "b.csv"

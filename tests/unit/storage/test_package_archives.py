"""Archives of configurations: what is read, what is refused, and that the same is the same."""

import io
import stat
import struct
import zipfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade.domain.errors import AdeError, InvalidRequest, PayloadTooLarge
from ade.storage import package_archives
from ade.storage.package_archives import ENTRIES_MAX, FILE_BYTES_MAX, read_package, write_package

MIB = 1024 * 1024


def archive(
    files: dict[str, bytes] | list[tuple[str, bytes]], mode: int = 0, **more: Any
) -> io.BytesIO:
    """Make an archive as a client would."""
    made = io.BytesIO()
    pairs = files.items() if isinstance(files, dict) else files
    with zipfile.ZipFile(made, "w", more.get("method", zipfile.ZIP_DEFLATED)) as writing:
        for name, content in pairs:
            entry = zipfile.ZipInfo("x")
            entry.filename = name  # past the cleaning of the constructor
            entry.external_attr = mode << 16
            entry.compress_type = more.get("method", zipfile.ZIP_DEFLATED)
            writing.writestr(entry, content)
        writing.comment = more.get("comment", b"")
    made.seek(0)
    return made


def read(file: io.BytesIO, files_max: int = 100, bytes_max: int = 4 * MIB) -> dict[str, bytes]:
    """Read a whole package."""
    return dict(read_package(file, files_max=files_max, bytes_max=bytes_max))


def test_files_come_out_as_they_went_in() -> None:
    files = {
        "config.toml": b"name='x'",
        "columns/id.py": b"FIELD",
        "lib/ü.txt": b"",
        "b.bin": b"\0",
    }
    assert read(archive(files)) == files
    assert read(archive(files, comment=b"PK made by someone")) == files
    assert read(archive(files, method=zipfile.ZIP_STORED)) == files
    assert read(archive(files, mode=stat.S_IFREG | 0o755)) == files


def test_one_folder_around_everything_is_left_out() -> None:
    inside = {"config.toml": b"1", "columns/id.py": b"2"}
    assert read(archive({f"my package/{path}": c for path, c in inside.items()})) == inside
    assert read(archive({"columns/id.py": b"2"})) == {"columns/id.py": b"2"}
    two = {"a/x.py": b"1", "b/y.py": b"2"}
    assert read(archive(two)) == two


def test_folders_and_litter_are_passed_over() -> None:
    files = {
        "p/": b"",
        "p/columns/": b"",
        "p/columns/id.py": b"1",
        "p/columns/__pycache__/id.pyc": b"2",
        "p/.DS_Store": b"3",
        "__MACOSX/p/._columns": b"4",
        "p/.git/HEAD": b"5",
    }
    assert read(archive(files)) == {"columns/id.py": b"1"}


@pytest.mark.parametrize(
    "name",
    [
        "../x.py",
        "a/../../x.py",
        "/etc/passwd",
        "//x",
        "a//b",
        "./a",
        "a/.",
        "C:\\x.py",
        "a\\b",
        "a\0b.py",
        "a\nb",
        "a\x7fb",
        "a\u202eb",
        " a",
        "a /b",
        "x" * 201,
        "/".join("abcdefghi"),
        "../",
        "/",
        "a/../b/",
    ],
)
def test_odd_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read(archive({"config.toml": b"", name: b"x"}))
    assert "\n" not in refused.value.detail
    assert "\0" not in refused.value.detail


@pytest.mark.parametrize(
    "kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK, stat.S_IFDIR]
)
def test_an_entry_that_is_not_a_file_is_refused(kind: int) -> None:
    with pytest.raises(InvalidRequest, match="not a regular file"):
        read(archive({"columns/id.py": b"/etc/passwd"}, mode=kind | 0o777))


def test_a_link_that_looks_like_a_folder_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        read(archive({"columns/": b"/etc"}, mode=stat.S_IFLNK | 0o777))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_clash_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="twice"):
        read(archive([("a.py", b"1"), ("a.py", b"2")]))
    with pytest.raises(InvalidRequest, match="not a folder"):
        read(archive([("lib", b"1"), ("lib/a.py", b"2")]))
    with pytest.raises(InvalidRequest, match="twice"):
        read(archive([("\u00e9.py", b"1"), ("e\u0301.py", b"2")]))


def test_other_ways_to_compress_and_encryption_are_refused() -> None:
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with pytest.raises(InvalidRequest, match="compressed"):
            read(archive({"a": b"x"}, method=method))
    data = bytearray(archive({"a": b"x"}).getvalue())
    for mark, place in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        data[data.index(mark) + place] |= 1
    with pytest.raises(InvalidRequest, match="encrypted"):
        read(io.BytesIO(bytes(data)))


def test_bombs_grow_to_their_limits_only() -> None:
    assert len(read(archive({"a": b"\0" * FILE_BYTES_MAX}))["a"]) == FILE_BYTES_MAX
    with pytest.raises(PayloadTooLarge):
        read(archive({"a": b"\0" * (FILE_BYTES_MAX + 1)}))
    with pytest.raises(PayloadTooLarge):
        read(archive({"a": b"\0" * (200 * MIB)}))
    many = {f"f{n}": b"\0" * FILE_BYTES_MAX for n in range(5)}
    with pytest.raises(PayloadTooLarge):
        read(archive(many), bytes_max=4 * MIB)


def test_a_false_size_does_not_pass_the_limit() -> None:
    data = bytearray(archive({"a": b"\0" * (3 * MIB)}).getvalue())
    at = data.index(b"PK\1\2")
    struct.pack_into("<L", data, at + 24, 10)
    with pytest.raises(AdeError):
        read(io.BytesIO(bytes(data)))


def test_entries_are_counted_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidRequest, match="at most 3 files"):
        read(archive({f"f{n}": b"" for n in range(4)}), files_max=3)
    crowd = archive({f"f{n}": b"" for n in range(ENTRIES_MAX + 1)})
    monkeypatch.setattr(package_archives.zipfile, "ZipFile", None)  # it must not even be opened
    with pytest.raises(PayloadTooLarge):
        read(crowd)
    lying = bytearray(crowd.getvalue())
    struct.pack_into("<HH", lying, len(lying) - 14, 1, 1)
    monkeypatch.setattr(package_archives, "DIRECTORY_BYTES_MAX", 1000)
    with pytest.raises(PayloadTooLarge):
        read(io.BytesIO(bytes(lying)))


def test_a_second_directory_of_64_bits_is_refused() -> None:
    data = archive({"a": b"x"}).getvalue()
    end = data.rindex(b"PK\5\6")
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 1)
    with pytest.raises(InvalidRequest, match="Zip64"):
        read(io.BytesIO(data[:end] + locator + data[end:]))


@pytest.mark.parametrize("data", [b"", b"x" * 100, b"PK\5\6", b"PK\3\4" + b"\0" * 50, b"\0" * 22])
def test_what_is_no_archive_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequest):
        read(io.BytesIO(data))


WHOLE = archive({"config.toml": b"name = 'x'\n", "columns/id.py": b"FIELD = 1\n" * 50}).getvalue()


@given(st.data())
def test_damage_is_reported_and_never_a_crash(data: st.DataObject) -> None:
    broken = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(broken)))
    for damaged in (bytes(broken), bytes(broken[:cut])):
        try:
            found = read(io.BytesIO(damaged))
        except AdeError:
            continue
        assert sum(map(len, found.values())) < MIB


def test_the_same_files_are_the_same_archive() -> None:
    files = {"b.py": b"2", "a/x.py": b"1", "ü": b"\0\1"}
    made = []
    for paths in (list(files), list(reversed(files))):
        out = io.BytesIO()
        write_package(out, paths, files.__getitem__)
        made.append(out.getvalue())
    assert made[0] == made[1]
    assert read(io.BytesIO(made[0])) == files

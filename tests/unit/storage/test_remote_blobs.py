"""Blobs in object storage: shared by hosts, checked on the way, collected, one database's own."""

import hashlib
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.object_storage import HASTY, TIMEOUTS, ObjectStorage

from ade.domain.errors import NotFound, Unavailable
from ade.storage import Blobs
from ade.storage.blob_keys import Blob, key_of
from ade.storage.object_store import StorageAway, Stored
from ade.storage.remote_blobs import FRESH_SECONDS, OLD_SECONDS, RemoteBlobs
from ade.storage.s3 import S3ObjectStore, Timeouts

pytestmark = pytest.mark.slow

MIB = 1024 * 1024
NOW = float(int(time.time()))
OLD = NOW - OLD_SECONDS - 1
STALE = NOW - FRESH_SECONDS - 60
NOBODYS = "sha256:" + "0" * 64


class Host:
    """Imitate a host with its own folder."""

    def __init__(
        self, storage: ObjectStorage, folder: Path, timeouts: Timeouts = TIMEOUTS, **given: int
    ) -> None:
        self.storage = storage
        self.remote = RemoteBlobs(storage.remote(timeouts))
        self.blobs = Blobs(folder, self.remote, **given)

    def keep(self, content: bytes) -> str:
        """Keep bytes."""
        return self.blobs.write([content], len(content)).digest

    def here(self) -> set[bytes]:
        """Read what is in the folder."""
        return {path.read_bytes() for path in self.blobs.path(NOBODYS).parents[1].rglob("*/*")}

    def unfinished(self) -> list[Path]:
        """List what lies about."""
        return list(self.blobs.unfinished_folder().iterdir())

    def used(self, digest: str, at: float) -> None:
        """Make it so that a file was last used at another time."""
        os.utime(self.blobs.path(digest), (at, at))


class Interrupted(S3ObjectStore):
    """Let something happen right after a look at an object, or after it was written."""

    then: Callable[[], object] | None = None
    after: Callable[[], object] | None = None

    def put(self, key: str, pieces: Iterable[bytes], size_bytes: int) -> None:
        """Write, and let it happen."""
        super().put(key, pieces, size_bytes)
        if self.after is not None:
            self.after()

    def head(self, key: str) -> Stored | None:
        """Look, and let it happen once."""
        found = super().head(key)
        then, self.then = self.then, None
        if then is not None:
            then()
        return found


@pytest.fixture
def host(storage: ObjectStorage, tmp_path: Path) -> Host:
    """Give a host."""
    return Host(storage, tmp_path / "one")


@pytest.fixture
def other(storage: ObjectStorage, tmp_path: Path) -> Host:
    """Give another host."""
    return Host(storage, tmp_path / "two")


def test_what_one_host_kept_another_fetches_once(host: Host, other: Host) -> None:
    digest = host.keep(b"abc")
    assert other.here() == set()
    assert other.blobs.existing(digest).read_bytes() == b"abc"
    assert other.blobs.path(digest).stat().st_mode & 0o777 == 0o400
    host.storage.kill()
    assert other.blobs.read(digest) == b"abc"


def test_a_large_blob_goes_there_and_comes_back(host: Host, other: Host) -> None:
    content = os.urandom(19 * MIB + 1)
    digest = host.keep(content)
    assert hashlib.sha256(other.blobs.existing(digest).read_bytes()).digest() == (
        hashlib.sha256(content).digest()
    )


def test_spoilt_bytes_are_never_shown(host: Host, other: Host) -> None:
    digest = host.keep(b"abc")
    for spoilt in (b"abd", b"ab", b"abcd", b""):
        host.storage.spoil(digest, spoilt)
        with pytest.raises(Unavailable, match="damaged"):
            other.blobs.existing(digest)
        assert other.here() == set()
        assert other.unfinished() == []
    host.storage.spoil(digest, b"abc")
    assert other.blobs.read(digest) == b"abc"


def test_what_cannot_be_sent_is_not_kept_here_either(host: Host) -> None:
    host.storage.kill()
    with pytest.raises(StorageAway) as away:
        host.keep(b"abc")
    assert (away.value.status, away.value.code) == (503, "unavailable")
    assert host.here() == set()
    assert host.unfinished() == []
    host.storage.start()
    assert host.blobs.read(host.keep(b"abc")) == b"abc"


def test_what_cannot_be_fetched_is_away_and_not_gone(host: Host, other: Host) -> None:
    digest = host.keep(b"abc")
    host.storage.kill()
    with pytest.raises(StorageAway):
        other.blobs.existing(digest)
    host.storage.start()
    assert other.blobs.read(digest) == b"abc"
    with pytest.raises(NotFound):
        other.blobs.existing(NOBODYS)


def test_who_asks_for_the_same_bytes_at_once_waits_once(host: Host, tmp_path: Path) -> None:
    digest = host.keep(b"abc")
    hasty = Host(host.storage, tmp_path / "two", replace(HASTY, silence_seconds=2, retries=0))

    def fetch(_: int) -> str:
        try:
            return hasty.blobs.read(digest).decode()
        except StorageAway as away:
            return away.reason

    with ThreadPoolExecutor(8) as pool, host.storage.frozen():
        began = time.monotonic()
        assert set(pool.map(fetch, range(8))) == {"it cannot be reached"}
        assert time.monotonic() - began < 8 * 2 / 2
    assert hasty.blobs.read(digest) == b"abc"


def test_bytes_are_sent_again_only_when_they_are_no_longer_fresh(host: Host, other: Host) -> None:
    digest = host.keep(b"abc")
    fresh = float(int(time.time())) - FRESH_SECONDS / 2  # of now: a run of all tests takes a while
    host.storage.date(digest, fresh)
    other.keep(b"abc")
    assert host.storage.blob(digest).stat().st_mtime == fresh
    host.storage.date(digest, STALE)
    other.keep(b"abc")
    assert host.storage.blob(digest).stat().st_mtime >= NOW


def test_an_object_of_another_size_is_replaced(host: Host, other: Host) -> None:
    digest = host.keep(b"abc")
    host.storage.spoil(digest, b"half")
    other.keep(b"abc")
    assert host.storage.blob(digest).read_bytes() == b"abc"


def test_what_is_deleted_right_after_it_was_sent_is_sent_again(
    storage: ObjectStorage, tmp_path: Path
) -> None:
    remote, another = Interrupted(storage.url, TIMEOUTS, storage.environ()), storage.remote()
    deleted: list[str] = []

    def delete_once() -> None:
        if not deleted:
            deleted.extend(one.key for one in another.list("sha256"))
            another.delete(deleted[0])

    remote.after = delete_once
    digest = Blobs(tmp_path / "one", RemoteBlobs(remote)).write([b"abc"], 3).digest
    assert deleted == [key_of(digest)]
    assert storage.blob(digest).read_bytes() == b"abc"


@pytest.mark.parametrize("left", [b"", b"ab", None])
def test_what_the_storage_takes_and_does_not_keep_is_not_kept(
    storage: ObjectStorage, tmp_path: Path, left: bytes | None
) -> None:
    digest = f"sha256:{hashlib.sha256(b'abc').hexdigest()}"
    remote, another = Interrupted(storage.url, TIMEOUTS, storage.environ()), storage.remote()

    def forget() -> None:
        if left is None:
            another.delete(key_of(digest))
        else:
            another.put(key_of(digest), [left], len(left))

    remote.after = forget
    blobs = Blobs(tmp_path / "one", RemoteBlobs(remote))
    with pytest.raises(StorageAway):
        blobs.write([b"abc"], 3)
    assert not blobs.path(digest).exists()


def test_a_file_that_is_not_what_its_name_says_is_not_sent(host: Host, tmp_path: Path) -> None:
    for size in (3, 9 * MIB):
        content = os.urandom(size)
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        (tmp_path / "file").write_bytes(content[:-1] + b"?")
        with pytest.raises(Unavailable, match="damaged"):
            host.remote.keep(Blob(digest, size), tmp_path / "file")
    assert host.storage.keys() == []


# --- collecting -----------------------------------------------------------------------------------


def test_what_is_written_while_it_is_collected_stays(storage: ObjectStorage, host: Host) -> None:
    digest = host.keep(b"abc")
    storage.date(digest, OLD)
    listed = next(host.remote.blobs())
    assert host.remote.is_old(listed, NOW)
    host.keep(b"abc")  # after the list, before it is looked at again
    assert not host.remote.delete_if_old(digest, NOW)
    storage.date(digest, OLD)
    assert host.remote.delete_if_old(digest, NOW)
    assert not host.remote.delete_if_old(digest, NOW)


def test_what_is_deleted_while_it_is_written_is_sent_again_or_said(
    storage: ObjectStorage, host: Host, tmp_path: Path
) -> None:
    """Delete an object at the one moment that the collector cannot see."""
    remote = Interrupted(storage.url, TIMEOUTS, storage.environ())
    collector = RemoteBlobs(remote)
    digest = host.keep(b"abc")
    storage.date(digest, OLD)
    remote.then = lambda: host.keep(b"abc")  # between the collector's look and its deletion
    assert collector.delete_if_old(digest, NOW)
    assert not host.remote.has(digest)
    host.blobs.collect({digest}, time.time())
    assert host.remote.has(digest)


def test_a_collection_sends_what_the_storage_lacks(storage: ObjectStorage, tmp_path: Path) -> None:
    before = Blobs(tmp_path / "one")  # from the time when there was no object storage
    kept, unused = (before.write([content], 9).digest for content in (b"needed", b"not"))
    spoilt = before.write([b"spoilt"], 9).digest
    before.path(spoilt).chmod(0o600)
    before.path(spoilt).write_bytes(b"wrong")
    host = Host(storage, tmp_path / "one")
    assert host.blobs.read(kept) == b"needed"
    assert host.blobs.collect({kept, spoilt}, time.time()) == 0
    assert storage.keys() == [key_of(kept)]
    assert host.blobs.path(unused).exists()


def test_strange_objects_are_left_alone(storage: ObjectStorage, host: Host) -> None:
    remote = storage.remote()
    strange = ["sha256/readme", "sha256/zz/" + "0" * 64, "sha256/00/" + "A" * 64, "other/x"]
    for key in strange:
        remote.put(key, [b"1"], 1)
        os.utime(storage.file(key), (1000, 1000))
    assert list(host.blobs.digests()) == []
    assert host.blobs.collect(set(), NOW) == 0
    assert storage.keys() == sorted(strange)


def test_garbage_behind_the_first_page_is_collected(storage: ObjectStorage, host: Host) -> None:
    digests = [f"sha256:{number:064x}" for number in range(2100)]
    storage.blob(digests[0]).parent.mkdir(parents=True)
    for digest in digests:
        storage.blob(digest).touch()
        os.utime(storage.blob(digest), (OLD, OLD))
    unused = {*digests[:5], *digests[1500:1505], *digests[-5:]}
    assert host.blobs.collect(set(digests) - unused, NOW) == len(unused)
    assert storage.keys() == [key_of(digest) for digest in digests if digest not in unused]


def test_a_collection_can_be_broken_off(storage: ObjectStorage, host: Host) -> None:
    old, lost = host.keep(b"old"), host.keep(b"lost")
    storage.date(old, OLD)
    host.remote.delete(lost)
    host.blobs.end()
    assert host.blobs.collect({lost}, NOW) == 0
    assert storage.keys() == [key_of(old)]


# --- the cache ------------------------------------------------------------------------------------


def test_over_its_limit_the_cache_loses_what_was_unused_longest(
    storage: ObjectStorage, tmp_path: Path
) -> None:
    host = Host(storage, tmp_path / "one", cache_bytes_max=2000)
    contents = [bytes([n]) * 1000 for n in range(4)]
    digests = [host.keep(content) for content in contents]
    for n, digest in enumerate(digests):
        host.used(digest, NOW - 10_000 + n)
    host.blobs.existing(digests[0])  # is used just now
    host.blobs.collect(set(digests), time.time())
    assert host.here() == {contents[0], contents[3]}
    assert [host.blobs.read(digest) for digest in digests] == contents


def test_what_was_just_used_stays_in_the_cache(storage: ObjectStorage, tmp_path: Path) -> None:
    host = Host(storage, tmp_path / "one", cache_bytes_max=0)
    digests = [host.keep(bytes([n])) for n in range(3)]
    host.used(digests[0], NOW - 10_000)
    host.blobs.collect(set(digests), time.time())
    assert host.here() == {b"\1", b"\2"}


def test_the_cache_is_looked_after_while_it_grows(storage: ObjectStorage, tmp_path: Path) -> None:
    host = Host(storage, tmp_path / "one", cache_bytes_max=10_000)
    for n in range(12):
        host.used(host.keep(bytes([n]) * 1000), NOW - 10_000 + n)
    assert sum(map(len, host.here())) <= 11_000


def test_what_left_the_cache_can_still_be_read_by_who_has_it(
    storage: ObjectStorage, tmp_path: Path
) -> None:
    host = Host(storage, tmp_path / "one", cache_bytes_max=0)
    digest = host.keep(b"abc")
    path, linked = host.blobs.existing(digest), tmp_path / "job"
    os.link(path, linked)
    with path.open("rb") as file:
        host.used(digest, NOW - 10_000)
        host.blobs.collect({digest}, time.time())
        assert not path.exists()
        assert file.read() == b"abc"
    assert linked.read_bytes() == b"abc"


def test_what_the_storage_does_not_have_stays_in_the_cache(
    storage: ObjectStorage, tmp_path: Path
) -> None:
    host = Host(storage, tmp_path / "one", cache_bytes_max=1000)
    digest = host.keep(b"abc")
    host.used(digest, NOW - 10_000)
    host.remote.delete(digest)
    host.keep(bytes(2000))  # makes it look at the cache
    assert b"abc" in host.here()


# --- whose it is ----------------------------------------------------------------------------------


def test_a_place_belongs_to_one_database(storage: ObjectStorage, host: Host, other: Host) -> None:
    host.remote.claim("me")
    host.remote.claim("me")
    other.remote.claim("me")
    stranger = RemoteBlobs(storage.remote())
    with pytest.raises(Unavailable, match="belongs to another ADE database") as refused:
        stranger.claim("you")
    assert refused.value.detail.startswith(f"ADE_BLOB_URL={storage.url} ")
    assert "\n" not in refused.value.detail


def test_nothing_is_deleted_in_a_place_that_was_taken_over(
    storage: ObjectStorage, host: Host
) -> None:
    host.remote.claim("me")
    digest = host.keep(b"abc")
    storage.date(digest, OLD)
    storage.remote().delete("owner")
    RemoteBlobs(storage.remote()).claim("you")
    assert host.blobs.collect(set(), NOW) == 0
    assert storage.blob(digest).exists()


def test_a_start_that_cannot_use_the_storage_says_why(storage: ObjectStorage) -> None:
    wrong = RemoteBlobs(storage.remote(AWS_SECRET_ACCESS_KEY="wrong"))
    nowhere = RemoteBlobs(S3ObjectStore("s3://nowhere/x", TIMEOUTS, storage.environ()))
    storage_url = storage.url
    for remote, url, why in (
        (wrong, storage_url, "it refuses these credentials"),
        (nowhere, "s3://nowhere/x", "there is no such bucket"),
    ):
        with pytest.raises(Unavailable) as refused:
            remote.claim("me")
        assert refused.value.detail.startswith(f"ADE_BLOB_URL={url} cannot be used: {why}")
        assert "AWS_ENDPOINT_URL" in refused.value.detail
        assert "\n" not in refused.value.detail
    storage.kill()
    with pytest.raises(Unavailable, match="cannot be used: it cannot be reached"):
        RemoteBlobs(storage.remote()).claim("me")
    with pytest.raises(StorageAway):
        RemoteBlobs(storage.remote()).reach()

"""Object storage over the wire: its verbs, credentials, and behaviour while unavailable."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.object_storage import BUCKET, HASTY, KEY_ID, PREFIX, SECRET, TIMEOUTS, ObjectStorage

from ade.domain.errors import Unavailable
from ade.storage.aws_settings import aws_settings
from ade.storage.object_store import StorageAway
from ade.storage.s3 import PART_BYTES, S3ObjectStore

pytestmark = pytest.mark.slow

MIB = 1024 * 1024
PIECE = 256 * 1024
BIG = 3 * PART_BYTES + 12_345


def content_of(remote: S3ObjectStore, key: str) -> bytes:
    """Read a whole object that must be there."""
    pieces = remote.get(key)
    assert pieces is not None
    return b"".join(pieces)


def in_pieces(content: bytes) -> Iterator[bytes]:
    """Give bytes in pieces."""
    return (content[at : at + PIECE] for at in range(0, len(content), PIECE))


def refused(remote: S3ObjectStore) -> str:
    """Return why the storage refuses each verb, and that it never says who asked."""
    reasons = set()
    for verb in (
        lambda: remote.put("a", [b"1"], 1),
        lambda: remote.get("a"),
        lambda: remote.head("a"),
        lambda: remote.delete("a"),
        lambda: list(remote.list("a")),
    ):
        with pytest.raises(StorageAway) as away:
            verb()
        reasons.add(away.value.reason)
        for text in (away.value.reason, away.value.detail, str(away.value.__cause__)):
            assert KEY_ID not in text
            assert SECRET not in text
    return " ".join(sorted(reasons))


def test_an_object_is_put_looked_at_read_listed_and_deleted(storage: ObjectStorage) -> None:
    remote = storage.remote()
    before = int(time.time())
    remote.put("a/b", [b"12", b"3"], 3)
    found = remote.head("a/b")
    assert found is not None
    assert (found.key, found.size_bytes) == ("a/b", 3)
    assert before <= found.written_at <= time.time()
    assert content_of(remote, "a/b") == b"123"
    assert [(one.key, one.size_bytes) for one in remote.list("a")] == [("a/b", 3)]
    assert list(remote.list("b")) == []
    remote.delete("a/b")
    remote.delete("a/b")
    assert (remote.head("a/b"), remote.get("a/b")) == (None, None)
    assert storage.keys() == []


def test_writing_anew_makes_an_object_young(storage: ObjectStorage) -> None:
    remote = storage.remote()
    remote.put("a", [b"1"], 1)
    os.utime(storage.file("a"), (1000, 1000))
    before = int(time.time())
    remote.put("a", [b"1"], 1)
    found = remote.head("a")
    assert found is not None
    assert found.written_at >= before


@pytest.mark.parametrize("size", [0, 1, PART_BYTES, PART_BYTES + 1, BIG])
def test_every_size_comes_back_as_it_went(storage: ObjectStorage, size: int) -> None:
    remote = storage.remote()
    content = os.urandom(size)
    remote.put("a", in_pieces(content), size)
    found = remote.head("a")
    assert found is not None
    assert found.size_bytes == size
    assert content_of(remote, "a") == content


def test_more_objects_than_fit_on_a_page_are_listed(storage: ObjectStorage) -> None:
    names = [f"{number:04}" for number in range(2100)]
    storage.file("many").mkdir(parents=True)
    for name in names:
        (storage.file("many") / name).touch()
    assert sorted(one.key for one in storage.remote().list("many")) == [
        f"many/{name}" for name in names
    ]


@pytest.mark.parametrize("failing", [OSError(5, "bad disk"), KeyError("ours")])
def test_what_cannot_be_read_here_is_not_blamed_on_the_storage(
    storage: ObjectStorage, failing: Exception
) -> None:
    def pieces() -> Iterator[bytes]:
        yield bytes(PART_BYTES + 1)
        raise failing

    with pytest.raises(type(failing)):
        storage.remote().put("a", pieces(), BIG)
    assert storage.keys() == []


# --- being away -----------------------------------------------------------------------------------


def test_a_storage_that_is_gone_is_said_to_be_away_and_is_used_when_it_is_back(
    storage: ObjectStorage,
) -> None:
    remote = storage.remote()
    remote.put("a", [b"1"], 1)
    storage.kill()
    assert refused(remote) == "it cannot be reached"
    storage.start()
    assert content_of(remote, "a") == b"1"


def test_a_storage_that_does_not_answer_is_given_up(storage: ObjectStorage) -> None:
    remote = storage.remote()
    remote.put("b", [b"1"], 1)
    with storage.frozen():
        began = time.monotonic()
        assert refused(storage.remote(HASTY)) == "it cannot be reached"
        assert time.monotonic() - began < TIMEOUTS.answer_seconds
    assert content_of(remote, "b") == b"1"


def test_a_download_goes_on_where_it_was_when_the_storage_is_back(storage: ObjectStorage) -> None:
    remote = storage.remote()
    content = os.urandom(BIG)
    remote.put("a", in_pieces(content), BIG)
    pieces = remote.get("a")
    assert pieces is not None
    got = next(pieces)
    storage.kill()
    storage.start()
    assert got + b"".join(pieces) == content


def test_a_download_that_breaks_off_for_good_is_said_to_have(storage: ObjectStorage) -> None:
    remote = storage.remote()
    remote.put("a", in_pieces(bytes(BIG)), BIG)
    pieces = remote.get("a")
    assert pieces is not None
    next(pieces)
    storage.kill()
    with pytest.raises(StorageAway):
        list(pieces)


def test_an_upload_that_breaks_off_leaves_nothing_to_be_seen(storage: ObjectStorage) -> None:
    remote = storage.remote()

    def pieces() -> Iterator[bytes]:
        yield bytes(PART_BYTES + 1)
        storage.kill()
        yield bytes(BIG - PART_BYTES - 1)

    with pytest.raises(StorageAway):
        remote.put("a", pieces(), BIG)
    storage.start()
    assert remote.head("a") is None
    remote.put("a", in_pieces(bytes(BIG)), BIG)
    assert content_of(remote, "a") == bytes(BIG)


# --- credentials and endpoint ---------------------------------------------------------------------


def test_wrong_credentials_are_reported_and_not_shown(storage: ObjectStorage) -> None:
    reason = refused(storage.remote(AWS_SECRET_ACCESS_KEY="another"))
    assert "it refuses these credentials, or what they may do (SignatureDoesNotMatch)" in reason
    assert "InvalidAccessKeyId" in refused(storage.remote(AWS_ACCESS_KEY_ID="nobody"))


def test_missing_credentials_are_reported(
    storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The machine that would be asked then is one that gives none.
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", storage.environ()["AWS_ENDPOINT_URL"])
    remote = storage.remote(AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")
    assert refused(remote) == "there are no credentials for it"


def test_a_missing_bucket_is_reported(storage: ObjectStorage) -> None:
    remote = S3ObjectStore("s3://nowhere/x", TIMEOUTS, storage.environ())
    for verb in (
        lambda: remote.put("a", [b"1"], 1),
        lambda: remote.get("a"),
        lambda: list(remote.list("a")),
    ):
        with pytest.raises(StorageAway) as away:
            verb()
        assert away.value.reason == "there is no such bucket"


@pytest.mark.parametrize("url", [f"s3://{BUCKET}/{PREFIX}/", f"s3://{BUCKET}/{PREFIX}"])
def test_the_url_names_bucket_and_prefix(storage: ObjectStorage, url: str) -> None:
    remote = S3ObjectStore(url, TIMEOUTS, storage.environ())
    remote.put("a", [b"1"], 1)
    assert storage.keys() == ["a"]
    assert remote.url == storage.url
    whole = S3ObjectStore(f"s3://{BUCKET}", TIMEOUTS, storage.environ())
    assert whole.url == f"s3://{BUCKET}"
    assert content_of(whole, f"{PREFIX}/a") == b"1"


def test_plain_http_is_spoken_only_where_the_endpoint_says_so(storage: ObjectStorage) -> None:
    safe = storage.environ()["AWS_ENDPOINT_URL"].replace("http:", "https:")
    remote = storage.remote(AWS_ENDPOINT_URL=safe, AWS_ALLOW_HTTP="true")
    assert refused(remote) == "it cannot be reached"
    with pytest.raises(Unavailable, match="AWS_ENDPOINT_URL must begin with"):
        storage.remote(AWS_ENDPOINT_URL="127.0.0.1:9000")


def test_a_profile_says_who_asks_and_where(storage: ObjectStorage, tmp_path: Path) -> None:
    endpoint = storage.environ()["AWS_ENDPOINT_URL"]
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        f"[other]\naws_access_key_id = x\n[mine]\naws_access_key_id = {KEY_ID}\n"
        f"aws_secret_access_key = {SECRET}\n"
    )
    (tmp_path / ".aws" / "config").write_text(
        f"[profile mine]\nregion = us-east-1\nendpoint_url = {endpoint}\n[profile role]\nrole = x\n"
    )
    nothing = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"), "")
    remote = storage.remote(**nothing, AWS_REGION="", AWS_PROFILE="mine")
    remote.put("a", [b"1"], 1)
    assert storage.keys() == ["a"]
    with pytest.raises(Unavailable, match="AWS_PROFILE=role has no aws_access_key_id"):
        storage.remote(**nothing, AWS_PROFILE="role")
    (tmp_path / ".aws" / "config").write_text("no section\n")
    with pytest.raises(Unavailable, match="cannot be read as a file of AWS profiles") as odd:
        storage.remote()
    assert "no section" not in odd.value.detail


def test_variables_come_before_the_profile(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id=p\naws_secret_access_key=p\naws_session_token=p\nregion=p\n"
    )
    home = {"HOME": str(tmp_path)}
    assert aws_settings({"HOME": str(tmp_path / "nowhere")}) == {}
    profile = aws_settings(home)
    assert set(profile.values()) == {"p"}
    keys = {"AWS_ACCESS_KEY_ID": "v", "AWS_SECRET_ACCESS_KEY": "v"}
    assert aws_settings(home | keys | {"AWS_REGION": "v"}) == {
        "access_key_id": "v",
        "secret_access_key": "v",
        "region": "v",
    }
    assert aws_settings(home | {"AWS_WEB_IDENTITY_TOKEN_FILE": "f"}) == {"region": "p"}


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(Unavailable, match=r"ADE_BLOB_URL .* pip install 'ade\[s3\]'"):
        S3ObjectStore("s3://bucket", TIMEOUTS, {})

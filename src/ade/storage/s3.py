"""Object storage that speaks S3, by obstore.

Credentials and endpoint come from the variables of AWS (`aws_settings`); nothing of it
is ADE's to know, to show or to pass on. Errors are read for their kind and their S3 code alone: the
text of one may hold the key's name.

Time. A request that carries no bytes is given up after `answer_seconds`. One that carries them may
take long, but not be silent for `silence_seconds`; a part that is sent must arrive within that.
What failed is tried again `retries` times, after pauses that grow, and not after `retry_seconds`:
a storage that is started anew is back by then.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog

from ade.domain.errors import Unavailable
from ade.domain.units import MIB
from ade.storage.aws_settings import aws_settings
from ade.storage.object_store import StorageAway, Stored

SCHEME = "s3://"
PIECE_BYTES = MIB
PART_BYTES = 8 * MIB
PARTS_MAX = 9_000  # S3 itself takes 10,000
PARTS_AT_ONCE = 4
PAGE_KEYS = 1000
NO_EXTRA = "ADE_BLOB_URL needs a package that is not installed: pip install 'ade[s3]'."
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_STATUS = re.compile(r"status code: (\d{3})")
_OF_MACHINES = "/latest/api/token"  # asked for credentials when nothing else has them
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Say how long to wait for the storage."""

    connect_seconds: float = 5
    answer_seconds: float = 20
    silence_seconds: float = 60
    carry_seconds: float = 4 * 3600
    pause_seconds: float = 0.5
    retries: int = 10
    retry_seconds: float = 20


class S3ObjectStore:
    """Hold objects below one prefix of one bucket."""

    def __init__(
        self,
        url: str,
        timeouts: Timeouts | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Make clients for `s3://bucket/prefix`; no request is sent yet."""
        try:
            import obstore
            from obstore.exceptions import BaseError
            from obstore.store import S3Store
        except ImportError:
            raise Unavailable(NO_EXTRA) from None
        bucket, _, prefix = url.removeprefix(SCHEME).strip("/").partition("/")
        self._url = f"{SCHEME}{bucket}/{prefix}".rstrip("/")
        self._obstore: Any = obstore
        self._errors = (BaseError, OSError, ValueError)
        config = aws_settings(os.environ if environ is None else environ)
        config["disable_bulk_delete"] = True  # not all know it, and we delete one at a time
        waits = timeouts or Timeouts()
        client: Any = {
            "allow_http": str(config.get("endpoint", "")).startswith("http://"),
            "connect_timeout": timedelta(seconds=waits.connect_seconds),
        }
        quick = {"timeout": timedelta(seconds=waits.answer_seconds)}
        long = {
            "timeout": timedelta(seconds=waits.carry_seconds),
            "read_timeout": timedelta(seconds=waits.silence_seconds),
        }
        given: Any = {"prefix": prefix or None, "config": config, "retry_config": _again(waits)}
        try:
            self._asking = S3Store(bucket, client_options=client | quick, **given)
            self._carrying = S3Store(bucket, client_options=client | long, **given)
        except self._errors as error:
            raise Unavailable(
                "The storage that ADE_BLOB_URL names cannot be set up with these AWS_* variables:"
                f" {type(error).__name__}."
            ) from None

    @property
    def url(self) -> str:
        """Name the place, without credentials."""
        return self._url

    def put(self, key: str, pieces: Iterable[bytes], size_bytes: int) -> None:
        """Write an object, in parts if it is large; each request is signed with its digest."""
        if size_bytes <= PART_BYTES:
            content = b"".join(pieces)
            with self._asked("put"):
                self._obstore.put(self._carrying, key, content, use_multipart=False)
            return
        part_bytes = max(PART_BYTES, -(-size_bytes // PARTS_MAX))
        reading = _Reading(pieces)
        with self._asked("put", reading):
            self._obstore.put(
                self._carrying,
                key,
                iter(reading),
                use_multipart=True,
                chunk_size=part_bytes,
                max_concurrency=PARTS_AT_ONCE,
            )

    def get(self, key: str) -> Iterator[bytes] | None:
        """Read an object piece by piece; None if there is none."""
        with self._asked("get"):
            try:
                found = self._obstore.get(self._carrying, key)
            except FileNotFoundError as error:
                _not_without_bucket(error)
                return None
        return self._pieces(found.stream(min_chunk_size=PIECE_BYTES))

    def _pieces(self, stream: Any) -> Iterator[bytes]:
        with self._asked("get"):
            yield from map(bytes, stream)

    def head(self, key: str) -> Stored | None:
        """Look at an object; None if there is none."""
        with self._asked("head"):
            try:
                return _stored(self._obstore.head(self._asking, key))
            except FileNotFoundError as error:
                _not_without_bucket(error)
                return None

    def delete(self, key: str) -> None:
        """Delete an object; doing it twice is harmless."""
        with self._asked("delete"):
            try:
                self._obstore.delete(self._asking, key)
            except FileNotFoundError as error:
                _not_without_bucket(error)

    def list(self, prefix: str) -> Iterator[Stored]:
        """List every object below a prefix, page by page."""
        with self._asked("list"):
            for page in self._obstore.list(self._asking, prefix, chunk_size=PAGE_KEYS):
                yield from map(_stored, page)

    @contextmanager
    def _asked(self, what: str, reading: "_Reading | None" = None) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            if reading is not None and reading.failed is not None:
                raise reading.failed from None
            reason = _reason(error)
            log.warning("the blob storage is away", asked=what, url=self._url, reason=reason)
            raise StorageAway(reason) from None


class _Reading:
    """Give the pieces of what is sent, and remember it if they are what failed."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self.failed: Exception | None = None

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._pieces
        except Exception as error:
            self.failed = error
            raise


def _again(waits: Timeouts) -> dict[str, Any]:
    """Say how what failed is tried again."""
    first, longest = timedelta(seconds=waits.pause_seconds), timedelta(seconds=5)
    return {
        "max_retries": waits.retries,
        "retry_timeout": timedelta(seconds=waits.retry_seconds),
        "backoff": {"init_backoff": first, "max_backoff": longest, "base": 2},
    }


def _not_without_bucket(error: FileNotFoundError) -> None:
    """Take it that there is no such object, unless there is not even the bucket."""
    if "NoSuchBucket" in str(error):
        raise error


def _stored(meta: Any) -> Stored:
    return Stored(meta["path"], meta["size"], meta["last_modified"].timestamp())


def _reason(error: Exception) -> str:
    """Say what went wrong in words that are safe to show."""
    text = str(error)
    code = found[1] if (found := _CODE.search(text)) else ""
    status = found[1] if (found := _STATUS.search(text)) else ""
    if _OF_MACHINES in text:
        return "there are no credentials for it"
    if code == "NoSuchBucket":
        return "there is no such bucket"
    if status in ("401", "403"):
        return f"it refuses these credentials, or what they may do ({code or status})"
    if status:
        return f"it answers {status} {code}".rstrip()
    return "it cannot be reached"

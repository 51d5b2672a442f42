"""A real server that speaks S3 (rclone), started by the tests, and killed by them too.

Its buckets are folders, so a test can look at an object's bytes, spoil them, or make them older.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.processes import eventually, is_frozen

from ade.environments import die_with_parent
from ade.storage.blob_keys import key_of
from ade.storage.s3 import S3ObjectStore, Timeouts

RCLONE = str(Path(sys.executable).parent / "rclone")
KEY_ID = "ADETESTKEYID"
SECRET = "a-secret-of-the-tests"
BUCKET = "blobs"
PREFIX = "some/where"
# As long as a busy machine may take, but not long to find out that nothing listens.
TIMEOUTS = Timeouts(
    answer_seconds=20, silence_seconds=20, pause_seconds=0.1, retries=3, retry_seconds=3
)
# For a storage that is known not to answer.
HASTY = replace(TIMEOUTS, answer_seconds=0.5, silence_seconds=0.5, retries=1)
START_SECONDS = 20.0


class ObjectStorage:
    """Run one storage; after a kill and a restart it holds what it held."""

    url = f"s3://{BUCKET}/{PREFIX}"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / BUCKET).mkdir(parents=True)
        self._port = 0
        self._popen: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start the server, where it was before."""
        said = self.folder.with_name(f"{self.folder.name}.log")
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        command = [
            # Killed with us, also if the test does not finish.
            *(sys.executable, "-I", "-S", str(Path(die_with_parent.__file__)), str(os.getpid())),
            *(RCLONE, "serve", "s3", "--config", os.devnull),
            *("--addr", f"127.0.0.1:{self._port}", "--auth-key", f"{KEY_ID},{SECRET}"),
            *("--dir-cache-time", "1ms", str(self.folder)),
        ]
        with said.open("wb") as log:
            self._popen = subprocess.Popen(command, env=environ, stderr=log)

        def port() -> str:
            assert self._popen is not None
            assert self._popen.poll() is None, said.read_text()
            found = re.search(
                r"Starting s3 server on \[http://127\.0\.0\.1:(\d+)/\]", said.read_text()
            )
            return found[1] if found else ""

        self._port = int(eventually(port, START_SECONDS))

    def kill(self) -> None:
        """Kill the server, as a crash would."""
        if self._popen is not None:
            self._popen.kill()
            self._popen.wait()
            self._popen = None

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Let the server take connections and answer nothing."""
        assert self._popen is not None
        pid = self._popen.pid
        self._popen.send_signal(signal.SIGSTOP)
        eventually(lambda: is_frozen(pid))
        try:
            yield
        finally:
            self._popen.send_signal(signal.SIGCONT)

    def environ(self, **changes: str) -> dict[str, str]:
        """Return the variables that let a process in; an empty one is left out."""
        given = {
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._port}",
            "AWS_REGION": "us-east-1",
            "HOME": str(self.folder.parent),
            **changes,
        }
        return {name: value for name, value in given.items() if value}

    def remote(self, timeouts: Timeouts = TIMEOUTS, /, **changes: str) -> S3ObjectStore:
        """Make a client."""
        return S3ObjectStore(self.url, timeouts, self.environ(**changes))

    def file(self, key: str) -> Path:
        """Return where the server has an object."""
        return self.folder / BUCKET / PREFIX / key

    def blob(self, digest: str) -> Path:
        """Return where the server has a blob."""
        return self.file(key_of(digest))

    def date(self, digest: str, at: float) -> None:
        """Make it so that a blob was written at another time."""
        os.utime(self.blob(digest), (at, at))
        remote, key = self.remote(), key_of(digest)
        eventually(lambda: (found := remote.head(key)) and int(found.written_at) == int(at))

    def spoil(self, digest: str, content: bytes) -> None:
        """Put other bytes in a blob's place, behind the server's back."""
        self.blob(digest).write_bytes(content)
        remote, key = self.remote(), key_of(digest)
        eventually(lambda: b"".join(remote.get(key) or ()) == content)

    def keys(self) -> list[str]:
        """List what the server has."""
        root = self.file("")
        return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())


@contextlib.contextmanager
def object_storage(folder: Path) -> Iterator[ObjectStorage]:
    """Run a server while inside."""
    storage = ObjectStorage(folder)
    try:
        yield storage
    finally:
        storage.kill()

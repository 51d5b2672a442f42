"""A real container engine for tests: Podman that serves the Docker API, with an image from nothing.

The image `ade-test` has nothing but a static busybox as `/bin/busybox` and `/bin/sh`. All that the
engine keeps is in one folder; its containers are removed at the end.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BUSYBOX = Path("/bin/busybox")
IMAGE = "localhost/ade-test:latest"
START_SECONDS = 120
CONTAINERS_CONF = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
STORAGE_CONF = """\
[storage]
driver = "vfs"
runroot = "{folder}/run"
graphroot = "{folder}/root"
"""
CONTAINERFILE = "FROM scratch\nCOPY busybox /bin/busybox\nCOPY busybox /bin/sh\n"


def why_none() -> str | None:
    """Say why no container can be run here, if that is so."""
    missing = [name for name in ("podman", "runc") if shutil.which(name) is None]
    if missing or not BUSYBOX.exists():
        names = ", ".join([*missing, *(() if BUSYBOX.exists() else ("busybox-static",))])
        return f"no container engine: {names} missing (scripts/test-programs installs them)"
    if os.geteuid() != 0:
        return "no container engine: Podman is set up for root only here"
    return None


@dataclass
class Engine:
    """Hold where the engine keeps its things, and its service."""

    folder: Path
    service: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the address of the API."""
        return f"unix://{self.folder}/s.sock"

    def podman(self, *words: str) -> str:
        """Run a command of Podman and return what it says."""
        done = subprocess.run(
            ["podman", "--tmpdir", str(self.folder / "tmp"), *words],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
        )
        if done.returncode:
            raise RuntimeError(f"podman {' '.join(words)}: {done.stderr}")
        return done.stdout

    @property
    def _environment(self) -> dict[str, str]:
        return os.environ | {
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
        }

    def running(self) -> list[str]:
        """List the containers that run."""
        return self.podman("ps", "-q").split()

    def all(self) -> list[str]:
        """List the containers that exist."""
        return self.podman("ps", "-aq").split()

    def start(self) -> None:
        """Write the configuration, make the image, and serve the API."""
        (self.folder / "containers.conf").write_text(CONTAINERS_CONF)
        (self.folder / "storage.conf").write_text(STORAGE_CONF.format(folder=self.folder))
        image = self.folder / "image"
        image.mkdir()
        shutil.copy(BUSYBOX, image / "busybox")
        (image / "Containerfile").write_text(CONTAINERFILE)
        self.podman("build", "-q", "-t", "ade-test", str(image))
        self.serve()

    def serve(self) -> None:
        """Serve the API until `end_service`."""
        tmp = str(self.folder / "tmp")
        self.service = subprocess.Popen(
            ["podman", "--tmpdir", tmp, "system", "service", "-t", "0", self.url],
            env=self._environment,
            cwd=self.folder,  # where it leaves a file when a container runs out of memory
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def end_service(self) -> None:
        """End the API; containers go on."""
        if self.service is not None:
            self.service.kill()
            self.service.wait()
            self.service = None

    def stop(self) -> None:
        """Remove all containers, and end the service."""
        with contextlib.suppress(RuntimeError):
            self.podman("rm", "-af", "-t", "0")
        self.end_service()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def container_engine(folder: Path) -> Iterator[Engine]:
    """Run an engine in a folder whose path is short enough for a socket."""
    engine = Engine(folder)
    try:
        engine.start()
        yield engine
    finally:
        engine.stop()

"""A real Grid Engine of one host (qmaster, execd), started by tests in a folder of its own.

It takes Debian's programs and default files, and needs root: execd changes to the user of a job.
Everything that it starts has `SGE_ROOT` in its environment, and so it leaves nothing behind.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.ports import free_ports
from tests.processes import eventually

from ade.environments import die_with_parent

PROGRAMS = ("sge_qmaster", "sge_execd", "qconf", "qsub", "qstat", "qdel")
INSTALLED = Path("/var/lib/gridengine")
LIBRARY = Path("/usr/lib/gridengine")
SHARE = Path("/usr/share/gridengine")
HOST = "localhost"
QUEUE = "short.q"
START_SECONDS = 90.0


def unusable() -> str | None:
    """Say why Grid Engine cannot be started here, or nothing."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    if absent := [name for name in PROGRAMS if shutil.which(name, path=path) is None]:
        return f"Grid Engine is not installed ({', '.join(absent)}); scripts/test-programs does it"
    if not (LIBRARY / "spoolinit").exists():
        return "this Grid Engine is not Debian's"
    return None if os.getuid() == 0 else "Grid Engine's execd needs root"


class GridEngine:
    """Run one cluster; `environment` is what its programs need to find it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        qmaster_port, execd_port = free_ports(2)
        self.environment = {
            "SGE_ROOT": str(folder),
            "SGE_CELL": "default",
            "SGE_QMASTER_PORT": str(qmaster_port),
            "SGE_EXECD_PORT": str(execd_port),
        }
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._lay_out()

    def _lay_out(self) -> None:
        common, spool = self.folder / "default" / "common", self.folder / "spool"
        for made in (common, spool / "qmaster" / "job_scripts", spool / "db", spool / "execd"):
            made.mkdir(parents=True)
        for name in ("bin", "lib", "util", "utilbin"):
            (self.folder / name).symlink_to(INSTALLED / name)
        (common / "act_qmaster").write_text(f"{HOST}\n")
        (common / "host_aliases").write_text(f"{HOST} {os.uname().nodename}\n")
        bootstrap = {
            "admin_user": "root",
            "ignore_fqdn": "true",
            "spooling_params": spool / "db",
            "qmaster_spool_dir": spool / "qmaster",
        }
        text = (SHARE / "default-bootstrap").read_text()
        (common / "bootstrap").write_text(changed(text, bootstrap))
        # A range of its own: an execd ends every process that has a group of one of its jobs.
        first = 70_000 + os.getpid() % 10_000 * 100
        configuration = {
            "execd_spool_dir": spool / "execd",
            "min_uid": 0,
            "min_gid": 0,
            "gid_range": f"{first}-{first + 99}",
            "load_report_time": "00:00:05",
        }
        text = (SHARE / "default-configuration").read_text()
        (self.folder / "configuration").write_text(changed(text, configuration))

    def start(self) -> None:
        """Start all, and wait until the queue takes jobs."""
        resources = SHARE / "util" / "resources"
        self._library("spoolinit", "berkeleydb", "libspoolb", f"{self.folder}/spool/db", "init")
        self._library("spooldefaults", "configuration", f"{self.folder}/configuration")
        self._library("spooldefaults", "complexes", str(resources / "centry"))
        self._library("spooldefaults", "usersets", str(resources / "usersets"))
        self._library("spooldefaults", "managers", "root")
        self.start_master()
        self._call("qconf", "-as", HOST)
        self._call("qconf", "-ah", HOST)
        self._start("sge_execd")
        eventually(lambda: HOST in self._call("qconf", "-sel").stdout, START_SECONDS)
        queue = {
            "qname": QUEUE,
            "hostlist": HOST,
            "load_thresholds": "NONE",
            "pe_list": "NONE",
            "slots": 16,
        }
        self._configure("-Aq", changed(self.run("qconf", "-sq"), queue))
        soon = {"schedule_interval": "0:0:1", "flush_submit_sec": 1, "flush_finish_sec": 1}
        self._configure("-Msconf", changed(self.run("qconf", "-ssconf"), soon))
        eventually(self._takes_jobs, START_SECONDS)

    def start_master(self) -> None:
        """Start qmaster, with the state that an earlier one left, and wait for its answer."""
        self._start("sge_qmaster")
        eventually(lambda: self._call("qconf", "-sm").returncode == 0, START_SECONDS)

    def stop_master(self) -> None:
        """Stop qmaster; jobs go on."""
        self._stop("sge_qmaster")

    def jobs(self) -> list[str]:
        """List the ids of the jobs that have not ended."""
        return [line.split()[0] for line in self.run("qstat").splitlines()[2:]]

    def run(self, program: str, *arguments: str) -> str:
        """Run a program that must succeed, and return what it printed."""
        answer = self._call(program, *arguments)
        assert answer.returncode == 0, answer.stderr + answer.stdout
        return answer.stdout

    def end(self) -> None:
        """Kill all jobs and all that was started."""
        for daemon in self._daemons.values():  # asked to stop, they would wait for each other
            daemon.kill()
            daemon.wait()
        for pid in self._pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _takes_jobs(self) -> bool:
        listing = self._call("qstat", "-f").stdout
        lines = [line for line in listing.splitlines() if line.startswith(QUEUE)]
        return [len(line.split()) for line in lines] == [5]  # a sixth word is a state of trouble

    def _configure(self, option: str, text: str) -> None:
        file = self.folder / "change"
        file.write_text(text)
        self.run("qconf", option, str(file))

    def _library(self, program: str, *arguments: str) -> None:
        self.run(str(LIBRARY / program), *arguments)

    def _call(self, program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        env = os.environ | self.environment
        return subprocess.run(
            [program, *arguments], env=env, capture_output=True, text=True, timeout=60
        )

    def _start(self, name: str) -> None:
        command = [
            # Killed with us, also if the test does not finish.
            *(sys.executable, "-I", "-S", str(Path(die_with_parent.__file__)), str(os.getpid())),
            f"/usr/sbin/{name}",
        ]
        with (self.folder / f"{name}.out").open("ab") as log:
            env = os.environ | self.environment | {"SGE_ND": "1"}  # in the foreground
            self._daemons[name] = subprocess.Popen(command, env=env, stdout=log, stderr=log)

    def _stop(self, name: str) -> None:
        daemon = self._daemons.pop(name)
        daemon.terminate()
        try:
            daemon.wait(30)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def _pids(self) -> Iterator[int]:
        """Find the processes that have this cluster in their environment: shepherds and jobs."""
        ours = f"SGE_ROOT={self.folder}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                variables = (folder / "environ").read_bytes().split(b"\0")
                if ours in variables and int(folder.name) != os.getpid():
                    yield int(folder.name)


def changed(text: str, values: dict[str, object]) -> str:
    """Replace the values of a file of Grid Engine; each must be there."""
    for name, value in values.items():
        text, times = re.subn(rf"(?m)^{name}\s.*$", f"{name} {value}", text)
        assert times == 1, name
    return text


@contextlib.contextmanager
def running_grid_engine() -> Iterator[GridEngine]:
    """Run a cluster while inside; its paths must be short."""
    folder = Path(tempfile.mkdtemp(prefix="ade-sge-"))
    folder.chmod(0o755)
    engine = GridEngine(folder)
    try:
        engine.start()
        yield engine
    finally:
        engine.end()
        shutil.rmtree(folder, ignore_errors=True)

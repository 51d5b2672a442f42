"""A real Slurm of one node (munged, slurmctld, slurmd), started by tests in a folder of its own.

It needs no root, no systemd and no accounting. Everything that it starts has `SLURM_CONF` or the
name of its cluster in its environment, and so it leaves nothing behind.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.ports import free_ports
from tests.processes import eventually

from ade.environments import die_with_parent

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
PARTITION = "short"
# What a busy machine may take; it takes some seconds.
START_SECONDS = 90.0
CONFIGURATION = """
ClusterName={cluster}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmdPort={slurmd_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
MessageTimeout=10
SlurmdTimeout=600
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName={partition} Nodes={host} Default=YES MaxTime=INFINITE OverSubscribe=FORCE:16 State=UP
"""


def missing() -> list[str]:
    """List the programs that are not installed."""
    return [name for name in PROGRAMS if _program(name) is None]


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


class SlurmCluster:
    """Run one cluster; `environment` is what the programs of Slurm need to find it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"ade{os.getpid()}"
        self.host = socket.gethostname().partition(".")[0]
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        for part in ("state", "spool"):
            (folder / part).mkdir()
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o400)
        self._file.write_text(self._configuration())

    @property
    def _file(self) -> Path:
        return self.folder / "slurm.conf"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which `sbatch` and others find this cluster."""
        return {"SLURM_CONF": str(self._file)}

    def _configuration(self) -> str:
        ctld_port, slurmd_port = free_ports(2)
        return CONFIGURATION.format(
            cluster=self.name,
            host=self.host,
            ctld_port=ctld_port,
            slurmd_port=slurmd_port,
            user=pwd.getpwuid(os.getuid()).pw_name,
            folder=self.folder,
            cpus=os.cpu_count(),
            partition=PARTITION,
        )

    def start(self) -> None:
        """Start all and wait until the node takes jobs."""
        munge = [f"--{part}-file={self.folder}/munge.{part}" for part in ("key", "pid", "seed")]
        munge += [f"--socket={self.folder}/munge.socket", f"--log-file={self.folder}/munged.log"]
        self._start("munged", "--foreground", "--force", *munge)
        eventually((self.folder / "munge.socket").exists, START_SECONDS)
        self.start_controller()
        self._start("slurmd", "-D", "-N", self.host)
        eventually(lambda: self.run("sinfo", "-h", "-o", "%t").split() == ["idle"], START_SECONDS)

    def start_controller(self) -> None:
        """Start slurmctld, with the state that an earlier one left, and wait for its answer."""
        self._start("slurmctld", "-D")
        eventually(lambda: self._answers("squeue", "-h"), START_SECONDS)

    def stop_controller(self) -> None:
        """Stop slurmctld; jobs go on."""
        self._stop("slurmctld")

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of Slurm that must succeed, and return what it printed."""
        answer = self._call(program, *arguments)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def jobs(self) -> list[str]:
        """List the names of the batch jobs that have not ended."""
        return self.run("squeue", "-h", "-o", "%j").split()

    def end(self) -> None:
        """Kill all jobs and all that was started."""
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self.run("scancel", "--signal=KILL", "--full", f"--partition={PARTITION}")
            self.run("scancel", f"--partition={PARTITION}")
            eventually(lambda: not self.jobs(), 15)
        for name in list(self._daemons):
            self._stop(name)
        for pid in self._pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _answers(self, program: str, *arguments: str) -> bool:
        return self._call(program, *arguments).returncode == 0

    def _call(self, program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [_program(program) or program, *arguments]
        env = os.environ | self.environment
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)

    def _start(self, name: str, *arguments: str) -> None:
        command = [
            # Killed with us, also if the test does not finish.
            *(sys.executable, "-I", "-S", str(Path(die_with_parent.__file__)), str(os.getpid())),
            *(_program(name) or name, *arguments),
        ]
        with (self.folder / f"{name}.out").open("ab") as log:
            env = os.environ | self.environment
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
        """Find the processes that have this cluster in their environment: steps and their jobs."""
        ours = (f"SLURM_CONF={self._file}".encode(), f"SLURM_CLUSTER_NAME={self.name}".encode())
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if int(folder.name) != os.getpid():
                    variables = (folder / "environ").read_bytes().split(b"\0")
                    if any(one in variables for one in ours):
                        yield int(folder.name)


@contextlib.contextmanager
def running_cluster() -> Iterator[SlurmCluster]:
    """Run a cluster while inside; its sockets need a short path."""
    folder = Path(tempfile.mkdtemp(prefix="ade-slurm-"))
    folder.chmod(0o755)
    cluster = SlurmCluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()
        shutil.rmtree(folder, ignore_errors=True)

"""Stream the output of containers on several agents to a server that is restarted meanwhile.

    scripts/bench agent_logs [--agents 20] [--seconds 20] [--quiet]

Real processes: one server, the agents, and a container of Podman for each agent that writes
1 MiB/s. In the middle the server is killed and started again, and while it is away one agent is
asked to end and started again. What the server has at the end is compared with what was written.
With `--quiet` nothing is restarted.
"""

import argparse
import hashlib
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from tests.container_engine import container_engine, why_none
from tests.containers.hosts import Cluster
from tests.system.server import ENDED

PIECE_BYTES = 1024 * 1024
SCRIPT = """
i=0
while [ $i -lt {seconds} ]; do
  /bin/busybox yes "agent {agent} second $i" | /bin/busybox head -c {size}
  i=$((i+1))
  /bin/busybox sleep 0.95
done
"""
POLL_SECONDS = 0.5


def written(agent: int, seconds: int) -> bytes:
    """Return what a container writes."""
    parts = []
    for second in range(seconds):
        line = b"agent %d second %d\n" % (agent, second)
        parts.append((line * (PIECE_BYTES // len(line) + 1))[:PIECE_BYTES])
    return b"".join(parts)


def cpu_seconds(pid: int) -> float:
    """Read how much CPU time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run it and print what was measured as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--quiet", action="store_true", help="restart nothing")
    given = parser.parse_args()
    if (reason := why_none()) is not None:
        sys.exit(reason)
    with (
        tempfile.TemporaryDirectory(prefix="ade-logs-") as folder,
        container_engine(Path(tempfile.mkdtemp(prefix="ade-pod-"))) as engine,
    ):
        hosts = Cluster(Path(folder), engine, ADE_MAX_CONCURRENCY=1)
        try:
            found = stream(hosts, given.agents, given.seconds, restarts=not given.quiet)
            print(json.dumps(found, indent=1))
        finally:
            hosts.end()


def stream(hosts: Cluster, agents: int, seconds: int, *, restarts: bool) -> dict[str, object]:
    """Stream from all agents, and compare."""
    server = hosts.serves()
    running = [hosts.agent(f"a{number}", "--drain-seconds", "600") for number in range(agents)]
    jobs = []
    for number in range(agents):
        script = SCRIPT.format(agent=number, seconds=seconds, size=PIECE_BYTES)
        wanted: dict[str, Any] = {"preferred_host": f"a{number}", "require_host": True}
        jobs.append(hosts.submit(script, **wanted))
    until(lambda: all(hosts.log_size(job) > 0 for job in jobs))
    began, used = time.monotonic(), cpu_seconds(server.pid)
    stored = sum(map(hosts.log_size, jobs))
    time.sleep(seconds / 3)
    now = sum(map(hosts.log_size, jobs))
    steady_seconds = time.monotonic() - began
    rate = (now - stored) / steady_seconds / PIECE_BYTES
    server_cpu = (cpu_seconds(server.pid) - used) / steady_seconds * 100
    if restarts:
        server.signal(signal.SIGKILL)
        server.ended()
        running[0].signal(signal.SIGTERM)
        time.sleep(2)
        server = hosts.serves()
        running[0].ended(600)
        running[0] = hosts.agent("a0", "--drain-seconds", "600")
    until(lambda: all(hosts.job(job)["status"] in ENDED for job in jobs))
    took = time.monotonic() - began
    statuses = [hosts.job(job)["status"] for job in jobs]
    equal = [
        hashlib.sha256(hosts.log(job)).digest() == hashlib.sha256(written(number, seconds)).digest()
        for number, job in enumerate(jobs)
    ]
    memory = [rss_mb(process.pid) for process in running]
    return {
        "agents": agents,
        "seconds_each": seconds,
        "stored_mib": agents * seconds,
        "succeeded": statuses.count("succeeded"),
        "equal_by_digest": sum(equal),
        "restarts": restarts,
        "steady_mib_per_second": round(rate, 1),
        "steady_server_cpu_percent": round(server_cpu, 1),
        "took_seconds": round(took, 1),
        "agent_rss_mb": round(sum(memory) / len(memory), 1),
        "cores": os.cpu_count(),
    }


def until(look: Callable[[], bool]) -> None:
    """Look until something is true; a server that is away is not yet."""
    for _ in range(2000):
        try:
            if look():
                return
        except httpx.HTTPError:
            pass
        time.sleep(POLL_SECONDS)
    sys.exit("it took too long")


def rss_mb(pid: int) -> float:
    """Read how much memory a process holds."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()

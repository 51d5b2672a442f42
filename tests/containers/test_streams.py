"""Output of several agents at once, over a crash of the server and a restart of an agent.

`scripts/bench agent_logs` does the same with 20 agents.
"""

from pathlib import Path

from bench.agent_logs import stream
from tests.container_engine import Engine
from tests.containers.hosts import cluster


def test_streams_are_complete_by_digest(tmp_path: Path, podman: Engine) -> None:
    with cluster(tmp_path, podman, ADE_MAX_CONCURRENCY=1) as hosts:
        found = stream(hosts, agents=2, seconds=5, restarts=True)
    assert (found["succeeded"], found["equal_by_digest"]) == (2, 2)

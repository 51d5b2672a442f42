"""What an agent says of its host."""

import json
from pathlib import Path

from ade.agents.telemetry import host_facts


def test_the_host_is_measured(tmp_path: Path) -> None:
    facts = host_facts(tmp_path)
    assert facts["memory_total_bytes"] >= facts["memory_available_bytes"] > 0
    assert facts["disk_total_bytes"] >= facts["disk_free_bytes"] > 0
    assert facts["cpus"] >= 1
    assert facts["load"] >= 0
    assert facts["version"]
    json.dumps(facts)

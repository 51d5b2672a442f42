"""`ade scale` as a process: it orders, is stopped and started again, and its pilots go on."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.processes import eventually
from tests.system.scaling import ended_blocks, scaler_status
from tests.system.server import Start, long_echo

from ade.agents.block_rows import block_prefix
from ade.agents.launchers.local import LocalLauncher

pytestmark = pytest.mark.slow
SECONDS = 180.0
NAME = f"c{os.getpid()}"
FILE = """
name = "{name}"
tick_seconds = 0.5
[pilot]
folder = "{folder}"
slots = 2
idle_exit_seconds = 3
[policy]
max_blocks = 1
"""


def test_pilots_outlive_the_scaler_and_are_adopted_by_the_next(
    start_on_postgres: Start, tmp_path: Path
) -> None:
    start = start_on_postgres
    file = tmp_path / "scale.toml"
    file.write_text(FILE.format(name=NAME, folder=tmp_path / "pilots"))
    server = start.server_without_worker()
    first = start.command("scale", "--config", str(file))
    first.said("is ready")
    jobs = [server.submit(**long_echo(8)) for _ in range(2)]
    eventually(lambda: all(server.job(job)["status"] == "running" for job in jobs), SECONDS)
    assert first.stop(SECONDS) == 0
    assert "pilots go on" in scaler_status(start, SECONDS)["leader"]
    (block,) = asyncio.run(LocalLauncher(block_prefix(NAME), tmp_path).poll())

    second = start.command("scale", "--config", str(file))
    second.said("is ready")
    assert {server.ended_job(job, SECONDS)["status"] for job in jobs} == {"succeeded"}
    (seen_block,) = ended_blocks(start, SECONDS)
    assert (seen_block["name"], seen_block["pilot"]) == (block.name, "left")
    seen = scaler_status(start, SECONDS)
    assert seen["totals"] == {"ordered": 1, "cancelled": 0, "failed": 0, "times_away": 0}
    assert seen["trouble"] is None

    assert server.metric("ade_scaler_blocks", scaler=NAME) == 0
    components = server.http.get("/api/v1/health").json()["components"]
    assert {"name": "scalers", "status": "ok", "detail": "They can order blocks."} in components
    assert second.stop(SECONDS) == 0
    table = start.command("scale", "status")
    assert table.ended(SECONDS) == 0
    assert block.name in table.output
    assert "1 block is ordered" in table.output


def test_a_mistake_in_the_file_is_one_line(start_on_postgres: Start, tmp_path: Path) -> None:
    file = tmp_path / "scale.toml"
    file.write_text("engine = 'slum'")
    refused = start_on_postgres.command("scale", "--config", str(file))
    assert refused.ended(SECONDS) == 2
    assert refused.output == (
        f"ade: {file}: engine='slum' is not allowed: give one of local, slurm, parsl\n"
    )


def test_a_database_with_one_owner_is_refused(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "scale.toml"
    file.write_text("")
    refused = start.command("scale", "--config", str(file))
    assert refused.ended(SECONDS) == 2
    assert "SQLite has one owner" in refused.output

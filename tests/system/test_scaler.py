"""A burst scales real pilots from none to several, and back to none."""

import asyncio
import os
from pathlib import Path

from tests.processes import aeventually
from tests.system.server import ADE, Start

from ade.agents.block_rows import block_prefix
from ade.agents.launchers.local import LocalLauncher
from ade.agents.scaler import Scaler, ScalerRule
from ade.domain.scaling import ScaleRule
from ade.store.session import Session

SECONDS = 180.0


async def test_a_burst_brings_pilots_and_they_leave(
    start_on_postgres: Start, postgres_url: str, tmp_path: Path
) -> None:
    env = start_on_postgres.environment(ADE_MAX_CONCURRENCY="2", ADE_QUEUE_SIZE="0")
    server = start_on_postgres.server(ADE_MAX_CONCURRENCY="1", ADE_QUEUE_SIZE="0")
    jobs = [server.submit(value=number, sleep_ms=300) for number in range(40)]
    name = f"t{os.getpid()}"
    rule = ScalerRule(name, "local", ScaleRule(2, 0, 2), 3600, 0.5, 2)
    given = [f"{key}={value}" for key, value in env.items() if key.startswith("ADE_")]

    def command(block: str, idle: float | None) -> list[str]:
        return ["env", *given, ADE, "worker", "--exit-when-idle", str(idle), "--block", block]

    store = Session(postgres_url)
    launcher = LocalLauncher(block_prefix(name), tmp_path)
    scaler = Scaler(store, launcher, rule, command, frozenset({"echo"}))
    other = Scaler(store, launcher, rule, command, frozenset({"echo"}))
    try:
        decision = await scaler.tick()
        assert decision is not None
        assert decision.launch == 2
        assert await other.tick() is None  # one decides at a time
        running = asyncio.create_task(scaler.run())
        ended = await asyncio.to_thread(lambda: [server.ended_job(job, SECONDS) for job in jobs])
        assert {job["status"] for job in ended} == {"succeeded"}

        async def all_ended() -> bool:
            rows = await store.aread(lambda reading: reading.scaling.blocks(name))
            return bool(rows) and all(row.status == "ended" for row in rows)

        await aeventually(all_ended, SECONDS)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert await launcher.poll() == []
        (row,) = await store.aread(lambda reading: reading.list_scalers())
        assert row.owner is None
        assert '"failures": 0' in row.state
    finally:
        store.close()

"""Two hundred runs of one configuration at the same moment; `tests.runs_load` starts a thousand."""

from pathlib import Path

from tests.runs_load import storm
from tests.system.server import Start

RUNS = 200
FINISHED = 20
AT_ONCE = 2


async def test_runs_that_come_together_share_one_build(start: Start, tmp_path: Path) -> None:
    server = start.server(ADE_QUEUE_SIZE=0, ADE_MAX_CONCURRENCY=AT_ONCE, ADE_LOG_LEVEL="warning")
    load = await storm([server], RUNS, tmp_path, finish=FINISHED)
    assert len(load.runs) == RUNS, load.refused
    assert sum(load.statuses.values()) == RUNS
    assert set(load.statuses) <= {"succeeded", "cancelled"}
    assert load.statuses["succeeded"] >= FINISHED
    assert load.wrong == []
    (build,) = load.builds
    assert (build["status"], build["attempt"], load.build_jobs) == ("ready", 1, 1)
    assert 1 <= load.at_once_max <= AT_ONCE
    started = RUNS - load.attempts[0]
    assert FINISHED < load.processes <= started + 1  # every run had one, and the build

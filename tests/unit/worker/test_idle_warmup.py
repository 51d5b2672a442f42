"""What is started in advance is what jobs will ask for."""

from importlib.util import find_spec

import pytest

from ade.kinds import JobInputs, load_kinds
from ade.kinds.normalize import Normalize
from ade.kinds.object_execute import SLOW_IMPORTS, ExecuteInputs, ObjectExecute
from ade.worker.idle_warmup import likely_preloads
from ade.worker.job_io import NoJobIO


@pytest.mark.parametrize("library", [name for name in SLOW_IMPORTS if find_spec(name) is not None])
async def test_a_cell_asks_for_modules_that_were_imported_in_advance(library: str) -> None:
    likely = [preload async for preload in likely_preloads(load_kinds())]
    source = f"import {library} as library\nlibrary.__version__"
    inputs = ExecuteInputs(source=source).model_dump(mode="json")
    cell = JobInputs("workspace", "job", 1, inputs, {"formats": ["png"]})
    prepared = await ObjectExecute().prepare(cell, NoJobIO())
    assert prepared.preload in likely


async def test_runs_come_first_and_nothing_comes_twice() -> None:
    likely = [preload async for preload in likely_preloads(load_kinds())]
    assert likely[0] == Normalize.preload
    assert len(likely) == len(set(likely))
    assert () not in likely

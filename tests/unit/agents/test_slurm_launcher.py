"""What is asked of Slurm, and that no answer is never an empty list."""

from pathlib import Path

import pytest

from ade.agents.launchers.port import EngineAway
from ade.agents.launchers.slurm import SlurmLauncher, SlurmOrder

ORDER = SlurmOrder(walltime_seconds=3590, grace_seconds=20, folder="/shared", partition="short")


def test_the_order_signals_the_pilot_alone_and_in_time() -> None:
    arguments = ORDER.arguments("ade-a-1")
    assert {"--time=60", "--signal=B:TERM@80", "--partition=short"} <= set(arguments)
    assert "--job-name=ade-a-1" in arguments
    assert not any("ALL" in word for word in arguments)


async def test_an_engine_that_does_not_answer_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EngineAway, match="squeue"):
        await SlurmLauncher("ade-a-", ORDER).poll()
    with pytest.raises(EngineAway):
        await SlurmLauncher("ade-a-", ORDER).launch("ade-a-1", ["ade", "worker"])


async def test_an_answer_that_is_not_understood_is_not_an_empty_list(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "squeue"
    program.write_text("#!/bin/sh\necho slurm is under maintenance\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(EngineAway, match="under maintenance"):
        await SlurmLauncher("ade-a-", ORDER).poll()

"""Network access follows one rule, for cells and for runs, and the record says what held."""

from pathlib import Path

import pytest
from tests.system.cells import run as run_cell
from tests.system.runs import configured, ran, uploaded
from tests.system.server import Server, starting

CELL = {True: {"network_access": "enabled"}, False: {"network_access": "disabled"}, None: {}}


def cell_has_network(server: Server, asked: bool | None) -> bool:
    """Run a cell that asks for network, declines it or does not say."""
    found = run_cell(server, "1", environment=CELL[asked])
    return "network_allowed" in found["job"]["isolation"]


def run_has_network(server: Server, asked: bool | None) -> bool:
    """Start a run that asks for network, declines it or does not say."""
    more = {} if asked is None else {"runtime_network_access": asked}
    run = ran(server, configured(server), uploaded(server), **more)
    assert run["status"] == "succeeded", run["error"]
    return "network_allowed" in run["isolation"]


@pytest.mark.parametrize(
    ("rule", "given"),
    [("if_asked", [True, False, False]), ("by_default", [True, True, False])],
)
def test_cells_and_runs_follow_the_same_rule(tmp_path: Path, rule: str, given: list[bool]) -> None:
    with starting(tmp_path, ADE_RUNTIME_NETWORK_ACCESS=rule, ADE_LOG_LEVEL="warning") as start:
        server = start.server()
        for has_network in (cell_has_network, run_has_network):
            assert [has_network(server, asked) for asked in (True, None, False)] == given

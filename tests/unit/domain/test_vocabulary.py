"""Vocabularies: what each API calls each status, with the facts beside it."""

import pytest

from ade.domain.job import TERMINAL, Status, StopRequest
from ade.domain.vocabulary import (
    ResultStatus,
    RunStatus,
    agent_status,
    contract_status,
    run_status,
)

RUN = {
    "pending": "queued",
    "queued": "queued",
    "running": "running",
    "paused": "queued",
    "succeeded": "succeeded",
    "failed": "failed",
    "timed_out": "failed",
    "cancelled": "cancelled",
}
AGENT = {
    "pending": "queued",
    "queued": "queued",
    "running": "dispatched",
    "paused": "stopped",
    "succeeded": "finished",
    "failed": "failed",
    "timed_out": "failed",
    "cancelled": "canceled",
}


@pytest.mark.parametrize("status", Status)
def test_a_run(status: Status) -> None:
    assert run_status(status) == RUN[status.value]


@pytest.mark.parametrize("status", Status)
def test_the_contract(status: Status) -> None:
    assert contract_status(status) == status.value.upper()


@pytest.mark.parametrize("status", Status)
def test_an_agent(status: Status) -> None:
    assert agent_status(status) == AGENT[status.value]


@pytest.mark.parametrize(
    ("status", "facts", "word"),
    [
        (None, {}, "not_found"),
        (Status.RUNNING, {"started": True}, "running"),
        (Status.RUNNING, {"stop_request": StopRequest.CANCEL}, "stop_requested"),
        (Status.RUNNING, {"stop_request": StopRequest.PAUSE, "started": True}, "stop_requested"),
        (Status.CANCELLED, {"ever_started": True}, "stopped"),
        (Status.CANCELLED, {"ever_started": False}, "canceled"),
        (Status.QUEUED, {"ever_started": True}, "queued"),
    ],
)
def test_the_facts_beside_the_status(
    status: Status | None, facts: dict[str, object], word: str
) -> None:
    assert agent_status(status, **facts) == word  # type: ignore[arg-type]


def test_every_word_of_an_agent_is_the_seeds() -> None:
    words = "launching queued dispatched running stop_requested stopped finished failed canceled"
    spoken = {
        agent_status(status, started=started, ever_started=started, stop_request=stop)
        for status in [None, *Status]
        for started in (True, False)
        for stop in (None, *StopRequest)
    }
    assert spoken <= {*words.split(), "not_found", "unknown"}


def test_the_statuses_of_runs_and_results_are_those_that_jobs_have() -> None:
    assert set(RunStatus) == {run_status(status) for status in Status}
    assert {status.value for status in ResultStatus} == {
        contract_status(status) for status in TERMINAL
    }

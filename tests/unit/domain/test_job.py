"""The state machine: exactly the table of the design, each step with its cause."""

import re

import pytest

from ade.domain.job import (
    BLOCKS_ITS_LANE,
    LIVE,
    TERMINAL,
    TRANSITIONS,
    WAIT_ENDS,
    WAITING,
    Cause,
    Status,
    is_allowed,
    mermaid,
)

# from, to, in the order of the design's table; None is where a job comes from.
TABLE = {
    None: {"pending", "queued"},
    "pending": {"queued", "cancelled", "paused"},
    "queued": {"running", "cancelled", "paused", "failed"},
    "running": {"succeeded", "failed", "timed_out", "cancelled", "paused", "queued"},
    "paused": {"queued", "cancelled", "succeeded"},
    "failed": {"queued", "succeeded"},
    "timed_out": {"queued", "succeeded"},
    "succeeded": set(),
    "cancelled": set(),
}


def test_the_statuses() -> None:
    words = "pending queued running paused succeeded failed timed_out cancelled"
    assert [status.value for status in Status] == words.split()
    assert {status.value for status in TERMINAL} == set(words.split()[-4:])


@pytest.mark.parametrize("source", [None, *Status])
@pytest.mark.parametrize("target", Status)
def test_the_table_is_that_of_the_design(source: Status | None, target: Status) -> None:
    allowed = target.value in TABLE[source.value if source else None]
    causes = {cause for cause in Cause if is_allowed(source, target, cause)} - {Cause.FORCED}
    waits_on = source is target is Status.QUEUED
    assert bool(causes) == (allowed or waits_on)
    assert causes == {
        one.cause
        for one in (*TRANSITIONS, *WAIT_ENDS)
        if (one.source, one.target) == (source, target)
    }


def test_each_step_has_one_entry_for_each_cause() -> None:
    assert len(set(TRANSITIONS)) == len(TRANSITIONS)
    causes = {one.cause for one in (*TRANSITIONS, *WAIT_ENDS)}
    assert causes == set(Cause) - {Cause.FORCED}


def test_the_end_of_a_wait_leaves_a_job_queued() -> None:
    assert {(one.source, one.target) for one in WAIT_ENDS} == {(Status.QUEUED, Status.QUEUED)}


@pytest.mark.parametrize("source", [None, *Status])
@pytest.mark.parametrize("target", Status)
def test_force_changes_any_job_but_gives_no_lease(source: Status | None, target: Status) -> None:
    changes = source is not None and source is not target
    allowed = changes and target is not Status.RUNNING
    assert is_allowed(source, target, Cause.FORCED) == allowed


def test_only_a_person_leads_out_of_a_terminal_status() -> None:
    out = {step.cause for step in TRANSITIONS if step.source in TERMINAL}
    assert out == {Cause.RESUMED, Cause.RESOLVED}


def test_only_a_claim_leads_to_running() -> None:
    assert {(s.source, s.cause) for s in TRANSITIONS if s.target is Status.RUNNING} == {
        (Status.QUEUED, Cause.CLAIMED)
    }


def test_every_status_is_reached_and_live_ones_are_left() -> None:
    assert {step.target for step in TRANSITIONS} == set(Status)
    assert {step.source for step in TRANSITIONS} >= LIVE


def test_the_groups_of_statuses() -> None:
    assert set(Status) == LIVE | TERMINAL
    assert not LIVE & TERMINAL
    assert WAITING < LIVE
    assert {status.value for status in BLOCKS_ITS_LANE} == {"paused", "failed", "timed_out"}


def test_the_diagram_draws_every_step() -> None:
    drawn = mermaid()
    edges = set(re.findall(r"^  (\S+) --> (\S+?)(?::|$)", drawn, re.MULTILINE))
    steps = {(s.source.value if s.source else "[*]", s.target.value) for s in TRANSITIONS}
    assert edges == steps | {(status.value, "[*]") for status in TERMINAL}
    assert drawn.startswith("stateDiagram-v2\n")
    for step in TRANSITIONS:
        assert step.cause.value in drawn

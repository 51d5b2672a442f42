"""The state machine: exactly the table of the design, each step with its cause."""

import re

import pytest

from ade.domain.job import (
    BLOCKS_ITS_LANE,
    LIVE,
    TERMINAL,
    TRANSITIONS,
    WAITING,
    Cause,
    Status,
    may_follow,
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
    assert may_follow(source, target) == allowed


def test_each_step_has_one_entry_for_each_cause() -> None:
    assert len(set(TRANSITIONS)) == len(TRANSITIONS)
    assert {step.cause for step in TRANSITIONS} == set(Cause)


def test_only_a_person_leads_out_of_a_terminal_status() -> None:
    out = {step.cause for step in TRANSITIONS if step.source in TERMINAL}
    assert out == {Cause.RESUME, Cause.RESOLVE}


def test_only_a_claim_leads_to_running() -> None:
    assert {(s.source, s.cause) for s in TRANSITIONS if s.target is Status.RUNNING} == {
        (Status.QUEUED, Cause.CLAIM)
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

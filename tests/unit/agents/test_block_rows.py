"""What becomes of the row of a block, given what the engine lists."""

import pytest

from ade.agents.block_rows import CANCELLED, compare, not_sent, ordered, refused, unanswered
from ade.agents.launchers.port import Block
from ade.domain.scaling import YOUNG_SECONDS
from ade.domain.units import MICROSECONDS
from ade.store.rows import BlockRow

ROW = ordered("ade-a-1", "a", 100)
QUEUED = ROW._replace(status="queued", engine_id="7")
YOUNG = int(YOUNG_SECONDS * MICROSECONDS)
RUNNING = QUEUED._replace(status="running", started_at=150)


def only(rows: list[BlockRow], listed: list[Block]) -> BlockRow:
    new, changed = compare(rows, listed, "a", 200)
    (found,) = new + changed
    return found


def test_a_listed_block_takes_its_id_and_its_state_from_the_engine() -> None:
    assert only([ROW], [Block("ade-a-1", "7", False, "pending")]) == QUEUED._replace(
        detail="pending"
    )
    started = only([QUEUED], [Block("ade-a-1", "7", True)])
    assert (started.status, started.started_at) == ("running", 200)


def test_a_listed_block_without_a_row_is_adopted() -> None:
    new, changed = compare([], [Block("ade-a-9", "7", True)], "a", 200)
    assert not changed
    assert [(row.name, row.scaler, row.status) for row in new] == [("ade-a-9", "a", "running")]


def test_nothing_is_written_while_nothing_changes() -> None:
    assert compare([RUNNING], [Block("ade-a-1", "7", True)], "a", 200) == ([], [])


@pytest.mark.parametrize(
    ("row", "status"),
    [
        (ROW, "failed"),
        (QUEUED, "failed"),
        (RUNNING, "failed"),
        (RUNNING._replace(registered_at=200 - YOUNG), "ended"),
        (RUNNING._replace(registered_at=201 - YOUNG), "failed"),
        (RUNNING._replace(registered_at=190, left_at=195), "ended"),
        (QUEUED._replace(detail=CANCELLED), "cancelled"),
        (RUNNING._replace(detail=CANCELLED), "failed"),
        (unanswered(ROW), "cancelled"),
    ],
)
def test_a_block_that_is_not_listed_has_ended(row: BlockRow, status: str) -> None:
    found = only([row], [])
    assert (found.status, found.finished_at) == (status, 200)
    assert compare([found], [], "a", 300) == ([], [])


def test_an_order_that_was_taken_after_all_is_adopted() -> None:
    gone = only([unanswered(ROW)], [])
    again = only([gone], [Block("ade-a-1", "7", False)])
    assert (again.status, again.finished_at) == ("queued", None)


def test_an_order_that_was_refused_or_not_sent_ends_with_its_reason() -> None:
    assert refused(ROW, "Invalid account " + "x" * 900, 200).detail.startswith("Invalid account")
    assert len(refused(ROW, "x" * 900, 200).detail) == 500
    assert not_sent(ROW, 200).status == "cancelled"

"""The rows of blocks, brought up to date with what an engine lists and answers.

the engine                          the row was        the row becomes
----------------------------------  -----------------  ---------------------------------------
lists the block                     any, or missing    queued or running
does not list it                    registered         ended
does not list it                    registered lately  failed: its pilot died without a goodbye
does not list it                    cancelled by us    cancelled
does not list it                    order unanswered   cancelled: the order was not taken
does not list it                    anything else      failed: its pilot never came
refuses the order                   ordered            failed, with what the engine said
"""

from collections.abc import Sequence

from ade.agents.launchers.port import Block
from ade.domain.scaling import YOUNG_SECONDS
from ade.domain.units import MICROSECONDS
from ade.store.rows import BlockRow

CANCELLED = "cancelled"
UNANSWERED = "the engine did not answer the order"
DETAIL_CHARACTERS_MAX = 500


def block_prefix(scaler: str) -> str:
    """Return what the names of a scaler's blocks begin with."""
    return f"ade-{scaler}-"


def ordered(name: str, scaler: str, now: int) -> BlockRow:
    """Make the row of a block that is about to be ordered."""
    return BlockRow(name, scaler, None, "ordered", "", now, None, None, None, None)


def refused(row: BlockRow, reason: str, now: int) -> BlockRow:
    """Note that the engine refused an order."""
    return row._replace(status="failed", detail=reason[:DETAIL_CHARACTERS_MAX], finished_at=now)


def unanswered(row: BlockRow) -> BlockRow:
    """Note that an order may have been taken or not: the engine's list will say."""
    return row._replace(detail=UNANSWERED)


def not_sent(row: BlockRow, now: int) -> BlockRow:
    """Note that an order was never sent."""
    return row._replace(status="cancelled", detail="the order was not sent", finished_at=now)


def compare(
    rows: Sequence[BlockRow], listed: Sequence[Block], scaler: str, now: int
) -> tuple[list[BlockRow], list[BlockRow]]:
    """Return the rows that are new and those that change, given what the engine lists."""
    known, there = {row.name: row for row in rows}, {block.name for block in listed}
    new, changed = [], []
    for block in listed:
        row = known.get(block.name)
        found = _listed(row or ordered(block.name, scaler, now), block, now)
        if row is None:
            new.append(found)
        elif found != row:
            changed.append(found)
    gone = (row for row in rows if row.finished_at is None and row.name not in there)
    changed += [_ended(row, now) for row in gone]
    return new, changed


def _listed(row: BlockRow, block: Block, now: int) -> BlockRow:
    return row._replace(
        engine_id=block.id,
        status="running" if block.is_started else "queued",
        detail=row.detail if row.detail == CANCELLED else block.detail[:DETAIL_CHARACTERS_MAX],
        started_at=(row.started_at or now) if block.is_started else None,
        finished_at=None,
    )


def _ended(row: BlockRow, now: int) -> BlockRow:
    ended = row._replace(finished_at=now)
    if died_young(ended):
        seconds = (now - (row.registered_at or now)) / MICROSECONDS
        detail = f"its pilot died within {seconds:.0f} s"
        return ended._replace(status="failed", detail=detail)
    if row.registered_at:
        return ended._replace(status="ended")
    was_cancelled = row.status == "queued" and row.detail == CANCELLED
    was_not_taken = row.status == "ordered" and row.detail == UNANSWERED
    return ended._replace(status="cancelled" if was_cancelled or was_not_taken else "failed")


def is_young(row: BlockRow, at: int) -> bool:
    """Tell whether the pilot of a block had come only a short while before a time."""
    return bool(row.registered_at) and at - (row.registered_at or 0) < YOUNG_SECONDS * MICROSECONDS


def died_young(row: BlockRow) -> bool:
    """Tell whether the pilot of a block was gone soon after it came, without a goodbye."""
    return bool(row.finished_at) and not row.left_at and is_young(row, row.finished_at or 0)


def has_lived(row: BlockRow, now: int) -> bool:
    """Tell whether the pilot of a block has lived for long enough, or said goodbye."""
    return bool(row.left_at) or not is_young(row, row.finished_at or now)

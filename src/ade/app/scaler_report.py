"""What people read of scalers: what each sees, its blocks, its decisions, what is wrong."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ade.domain.scaler_state import ScalerState, trouble
from ade.domain.units import MICROSECONDS
from ade.store.rows import BlockRow, ScalerRow
from ade.store.session import Session

ENDED_BLOCKS_SHOWN = 10
DECISIONS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class BlockReport:
    """Show one block."""

    name: str
    id: str | None
    state: str
    pilot: str
    age: str
    age_seconds: float
    detail: str


@dataclass(frozen=True, slots=True)
class DecisionReport:
    """Show one decision."""

    ago: str
    seconds_ago: float
    launch: int
    cancel: int
    reason: str


@dataclass(frozen=True, slots=True)
class ScalerReport:
    """Show one scaler."""

    name: str
    engine: str
    where: str
    leader: str
    trouble: str | None
    signals: Mapping[str, float]
    failures_in_a_row: int
    next_order_in_seconds: float | None
    engine_away_seconds: float | None
    max_blocks: int
    counts: Mapping[str, int]
    totals: Mapping[str, int]
    blocks: list[BlockReport]
    decisions: list[DecisionReport]

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return asdict(self)


def report_scalers(store: Session) -> list[ScalerReport]:
    """Read all scalers, with their live blocks and the last that ended."""
    now = store.clock.now_us()
    found = store.read(
        lambda reading: [
            (row, reading.scaling.blocks(row.name)) for row in reading.scaling.scalers()
        ]
    )
    return [report(row, blocks, now) for row, blocks in found]


def report(row: ScalerRow, blocks: list[BlockRow], now: int) -> ScalerReport:
    """Make the report of a scaler."""
    state = ScalerState.from_json(row.state)
    live = [one for one in blocks if one.finished_at is None]
    ended = [one for one in blocks if one.finished_at is not None][:ENDED_BLOCKS_SHOWN]
    order_at, away_at = state.next_order_at_us, state.away_since_us
    return ScalerReport(
        name=row.name,
        engine=row.engine,
        where=state.where,
        leader=_leader(row, now),
        trouble=trouble(row.name, state, row.lease_expires_at, now),
        signals=state.signals,
        failures_in_a_row=state.memory.failures,
        next_order_in_seconds=None if order_at is None else max(order_at - now, 0) / MICROSECONDS,
        engine_away_seconds=None if away_at is None else (now - away_at) / MICROSECONDS,
        max_blocks=state.max_blocks,
        counts=dict(Counter(one.status for one in live)),
        totals=asdict(state.totals),
        blocks=[_block(one, now) for one in (*live, *ended)],
        decisions=[
            DecisionReport(
                _age((now - one.at_us) / MICROSECONDS),
                (now - one.at_us) / MICROSECONDS,
                one.launch,
                one.cancel,
                one.reason,
            )
            for one in reversed(state.decisions[-DECISIONS_SHOWN:])
        ],
    )


def _leader(row: ScalerRow, now: int) -> str:
    if row.owner is None or row.lease_expires_at is None:
        return f"stopped {_age((now - row.seen_at) / MICROSECONDS)} ago; pilots go on"
    return f"process {row.owner} decided {_age((now - row.seen_at) / MICROSECONDS)} ago"


def _block(row: BlockRow, now: int) -> BlockReport:
    ended = row.finished_at
    pilot = "left" if row.left_at else "working" if row.registered_at else "not yet"
    if ended is not None and not row.left_at:
        pilot = "vanished" if row.registered_at else "never came"
    seconds = ((ended or now) - row.ordered_at) / MICROSECONDS
    return BlockReport(
        row.name, row.engine_id, row.status, pilot, _age(seconds), seconds, row.detail
    )


def _age(seconds: float) -> str:
    if seconds < 120:
        return f"{max(seconds, 0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"

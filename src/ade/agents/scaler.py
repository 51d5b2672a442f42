"""Keep as many pilots on an engine as the waiting work needs.

The model. One process at a time decides for a scaler: the one that holds the lease in its row. At
each tick it renews the lease, lists the blocks of the engine, brings the rows of its blocks up to
date, decides (`ade.domain.scaling`), writes the rows of new blocks, and only then orders them.

The rule about time. The lease lasts six ticks or more. A process orders nothing when its lease was
renewed longer ago than half of that, on its own monotonic clock.

    failure                                   what happens
    ----------------------------------------  ---------------------------------------------------
    the engine does not answer                nothing is decided; the state says so
    the process dies between row and order    the row is `ordered`; the next poll does not list it,
                                              and it counts as a block that failed
    an order was taken, its answer lost       the next poll lists its name
    another process takes the lease           this one changes nothing more, and waits
"""

import asyncio
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import structlog

from ade.agents.launchers.port import Block, BlockRefused, EngineAway, Launcher
from ade.domain.errors import AdeError, Conflict
from ade.domain.job import LOCAL_POOL
from ade.domain.scaling import (
    FailureMemory,
    ScaleDecision,
    ScaleRule,
    ScaleSignals,
    decide,
    idle_exit_seconds,
)
from ade.domain.units import MICROSECONDS
from ade.stages.workers import SILENT_SECONDS, WORKERS_LISTED_MAX
from ade.store.rows import BlockRow, WorkerRow
from ade.store.session import Session
from ade.store.transaction import SqlReading

LEASE_SECONDS = 30.0
BLOCKS_KEPT_SECONDS = 24 * 3600.0
DECISIONS_KEPT = 20
STARTS_REMEMBERED = 10
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ScalerRule:
    """Hold the settings of a scaler; `timeout_seconds_max` is the longest job a pilot takes."""

    name: str
    engine: str
    scale: ScaleRule
    timeout_seconds_max: float
    tick_seconds: float = 5.0
    idle_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class _Seen:
    blocks: list[BlockRow]
    signals: ScaleSignals
    too_long: int
    state: dict[str, Any]


class Scaler:
    """Decide and order, for as long as this process holds the lease."""

    def __init__(
        self,
        store: Session,
        launcher: Launcher,
        rule: ScalerRule,
        command: Callable[[str, float | None], Sequence[str]],
        kinds: frozenset[str],
    ) -> None:
        self._store, self._launcher, self._rule = store, launcher, rule
        self._command, self._kinds = command, kinds
        self.owner = secrets.token_hex(6)
        lease_seconds = max(LEASE_SECONDS, 6 * rule.tick_seconds)
        self._lease = (rule.name, rule.engine, self.owner, lease_seconds)
        self._renewed_at = 0.0

    @property
    def prefix(self) -> str:
        """Return what the names of this scaler's blocks begin with."""
        return block_prefix(self._rule.name)

    async def run(self) -> None:
        """Tick until cancelled; trouble is logged and tried again."""
        try:
            while True:
                try:
                    await self.tick()
                except (AdeError, OSError) as error:
                    log.warning("cannot decide", reason=str(error) or type(error).__name__)
                await asyncio.sleep(self._rule.tick_seconds)
        finally:
            await self._store.achange(
                lambda tx: tx.scaling.stop_leading(self._rule.name, self.owner)
            )

    async def tick(self) -> ScaleDecision | None:
        """Decide once and carry it out; None if another process decides or the engine is away."""
        sent_at = self._store.clock.monotonic()
        if not await self._store.achange(lambda tx: tx.scaling.lead(*self._lease)):
            return None
        self._renewed_at = sent_at
        try:
            listed = await self._launcher.poll()
        except EngineAway as away:
            log.warning("the engine does not answer", reason=str(away))
            return None
        changed = await self._reconcile(listed)
        seen = await self._look()
        now = self._store.clock.now_us()
        memory = _memory(seen, changed, now)
        decision = decide(seen.signals, self._rule.scale, memory, now / MICROSECONDS)
        await self._carry_out(seen, memory, decision)
        return decision

    async def _reconcile(self, listed: Sequence[Block]) -> list[BlockRow]:
        """Bring the rows of blocks up to date with what the engine lists, and write them."""
        rows = await self._store.aread(lambda reading: reading.scaling.blocks(self._rule.name))
        now = self._store.clock.now_us()
        known, there = {row.name: row for row in rows}, {block.name: block for block in listed}
        new, changed = [], []
        for block in listed:
            row = known.get(block.name)
            found = _listed(row or _ordered(block.name, self._rule.name, now), block, now)
            if row is None:
                new.append(found)
            elif found != row:
                changed.append(found)
        for row in rows:
            if row.finished_at is None and row.name not in there:
                cancelled = row.status == "queued" and row.detail == "cancelled"
                ended = "ended" if row.registered_at else "cancelled" if cancelled else "failed"
                changed.append(row._replace(status=ended, finished_at=now))
        await self._write(new, changed, None)
        return changed

    async def _look(self) -> _Seen:
        """Read what waits, what runs, and what is free."""
        longest_ms = int(self._rule.timeout_seconds_max * 1000)
        now = self._store.clock.now_us()

        def look(reading: SqlReading) -> _Seen:
            scaling = reading.scaling
            backlog = [b for b in scaling.backlog(LOCAL_POOL, longest_ms) if b.kind in self._kinds]
            fits = [one for one in backlog if one.fits]
            needed_us = max((one.timeout_ms for one in fits), default=0) * 1000
            busy = scaling.running_by_owner(LOCAL_POOL)
            workers = reading.list_workers(WORKERS_LISTED_MAX)
            free = sum(
                max(worker.slots - busy.get(worker.name, 0), 0)
                for worker in workers
                if _is_free(worker, now, needed_us)
            )
            blocks = scaling.live_blocks(self._rule.name)
            waiting = [one for one in blocks if one.registered_at is None]
            oldest = min((one.oldest_at for one in fits), default=now)
            found = scaling.find(self._rule.name)
            return _Seen(
                scaling.blocks(self._rule.name, 50),
                ScaleSignals(
                    waiting=sum(one.jobs for one in fits),
                    oldest_seconds=max(now - oldest, 0) / MICROSECONDS,
                    running=sum(busy.values()),
                    free_slots=free,
                    queued_blocks=tuple(one.name for one in waiting if one.status != "running"),
                    starting_blocks=sum(one.status == "running" for one in waiting),
                    live_blocks=sum(bool(b.registered_at) and not b.left_at for b in blocks),
                ),
                sum(one.jobs for one in backlog if not one.fits),
                json.loads(found.state) if found else {},
            )

        return await self._store.aread(look)

    async def _carry_out(self, seen: _Seen, memory: FailureMemory, decision: ScaleDecision) -> None:
        now = self._store.clock.now_us()
        names = [f"{self.prefix}{secrets.token_hex(5)}" for _ in range(decision.launch)]
        state = _state(seen, memory, decision, now)
        by_name = {row.name: row for row in seen.blocks}
        cancelled = [by_name[n]._replace(detail="cancelled") for n in decision.cancel]
        ordered = [_ordered(name, self._rule.name, now) for name in names]
        await self._write(ordered, cancelled, state)
        if decision.launch or decision.cancel:
            log.info("decided", launch=decision.launch, cancel=len(cancelled), why=decision.reason)
        ids = [row.engine_id for row in cancelled if row.engine_id]
        try:
            await self._launcher.cancel(ids)
            stays = seen.signals.blocks < self._rule.scale.min_blocks
            starts = tuple(
                (b.registered_at - b.ordered_at) / MICROSECONDS
                for b in seen.blocks
                if b.registered_at
            )[:STARTS_REMEMBERED]
            idle = None if stays else idle_exit_seconds(self._rule.idle_seconds, starts)
            for name in names:
                if self._store.clock.monotonic() - self._renewed_at > self._lease[3] / 2:
                    raise Conflict("The lease was renewed too long ago to order more blocks.")
                await self._launcher.launch(name, self._command(name, idle))
        except (EngineAway, BlockRefused) as error:
            log.warning("a block was not ordered", reason=str(error))

    async def _write(self, new: list[BlockRow], changed: list[BlockRow], state: str | None) -> None:
        if new or changed or state is not None:
            await self._store.achange(
                lambda tx: tx.scaling.change(self._lease, state, new, changed, BLOCKS_KEPT_SECONDS)
            )


def block_prefix(scaler: str) -> str:
    """Return what the names of a scaler's blocks begin with."""
    return f"ade-{scaler}-"


def _ordered(name: str, scaler: str, now: int) -> BlockRow:
    return BlockRow(name, scaler, None, "ordered", "", now, None, None, None, None)


def _listed(row: BlockRow, block: Block, now: int) -> BlockRow:
    return row._replace(
        engine_id=block.id,
        status="running" if block.is_started else "queued",
        detail=row.detail if row.detail == "cancelled" else block.detail,
        started_at=(row.started_at or now) if block.is_started else None,
        finished_at=None,
    )


def _is_free(worker: WorkerRow, now: int, needed_us: int) -> bool:
    """Tell whether a worker is alive and has time for the longest job that waits."""
    is_alive = worker.last_seen_at >= now - int(SILENT_SECONDS * MICROSECONDS)
    return is_alive and (worker.drains_at is None or worker.drains_at - now >= needed_us)


def _memory(seen: _Seen, changed: list[BlockRow], now: int) -> FailureMemory:
    kept = seen.state.get("memory", {})
    memory = FailureMemory(int(kept.get("failures", 0)), float(kept.get("failed_at_seconds", 0)))
    came = max((block.registered_at or 0 for block in seen.blocks), default=0) / MICROSECONDS
    if memory.failures and came > memory.failed_at_seconds:
        memory = memory.registered()
    failed = sum(block.status == "failed" for block in changed)
    return memory.failed(now / MICROSECONDS, failed)


def _state(seen: _Seen, memory: FailureMemory, decision: ScaleDecision, now: int) -> str:
    """Write what was seen and decided; of decisions that change nothing, only the last."""
    entry = {
        "at": now,
        "launch": decision.launch,
        "cancel": len(decision.cancel),
        "reason": decision.reason,
    }
    earlier = [e for e in seen.state.get("decisions", []) if e["launch"] or e["cancel"]]
    signals = asdict(seen.signals) | {"queued_blocks": len(seen.signals.queued_blocks)}
    return json.dumps(
        {
            "memory": asdict(memory),
            "signals": signals | {"too_long": seen.too_long},
            "decisions": [*earlier, entry][-DECISIONS_KEPT:],
        }
    )

"""Keep as many pilots on an engine as the waiting work needs.

The model. One process at a time decides for a scaler: the one that holds the lease in its row. At
each tick it renews the lease, lists the blocks of the engine, brings the rows of its blocks up to
date, decides (`ade.domain.scaling`), writes the rows of new blocks, and only then orders them.

The rule about time. The lease lasts six ticks or more. A process orders nothing when its lease was
renewed longer ago than a third of that, on its own monotonic clock.

    failure                                   what happens
    ----------------------------------------  ---------------------------------------------------
    the engine does not answer                nothing is decided; the state says so
    a pilot dies soon after it registered     its block failed, as if the pilot had never come
    the process dies between row and order    the row is `ordered`; the next poll does not list it,
                                              and it counts as a block that failed
    the engine refuses an order               the block failed; the rest of the round is not sent
    an order was taken, its answer lost       the next poll lists its name
    another process takes the lease           this one changes nothing more, and waits
    SIGTERM                                   the tick is finished, the lease is given back; pilots
                                              go on, and the next process adopts their blocks
"""

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from ade.agents import block_rows
from ade.agents.block_rows import CANCELLED, block_prefix, died_young, has_lived, is_young
from ade.agents.launchers.port import Block, BlockRefused, EngineAway, Launcher
from ade.domain.errors import AdeError
from ade.domain.job import LOCAL_POOL
from ade.domain.scaler_state import ScalerState
from ade.domain.scaling import ScaleDecision, ScaleRule, ScaleSignals, decide, idle_exit_seconds
from ade.domain.units import MICROSECONDS
from ade.stages.queue_pauses import paused_scopes
from ade.stages.workers import SILENT_SECONDS, WORKERS_LISTED_MAX
from ade.store.reading import SqlReading
from ade.store.rows import BlockRow, WorkerRow
from ade.store.session import Session

LEASE_SECONDS = 30.0
BLOCKS_KEPT_SECONDS = 24 * 3600.0
BLOCKS_LOOKED_AT = 50
STARTS_REMEMBERED = 10
# A job may wait for a year; more would not fit into the database's numbers.
TIMEOUT_SECONDS_MAX = 366 * 24 * 3600.0
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ScalerRule:
    """Hold the settings of a scaler; `timeout_seconds_max` is the longest job a pilot takes."""

    name: str
    engine: str
    scale: ScaleRule
    timeout_seconds_max: float = TIMEOUT_SECONDS_MAX
    tick_seconds: float = 5.0
    idle_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class _Seen:
    newest: list[BlockRow]
    live: list[BlockRow]
    signals: ScaleSignals
    too_long: int


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
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Let `run` return once the present tick is finished; pilots go on."""
        self._stopping.set()

    async def run(self) -> None:
        """Tick until stopped; trouble is logged and tried again."""
        try:
            while not self._stopping.is_set():
                try:
                    await self.tick()
                except (AdeError, OSError) as error:
                    log.warning("cannot decide", reason=str(error) or type(error).__name__)
                except Exception as error:
                    log.error("cannot decide", exc_info=error)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._rule.tick_seconds):
                        await self._stopping.wait()
        finally:
            with contextlib.suppress(AdeError):  # without a database, the lease just expires
                await self._store.achange(
                    lambda tx: tx.scaling.stop_leading(self._rule.name, self.owner)
                )

    async def tick(self) -> ScaleDecision | None:
        """Decide once and carry it out; None if another process decides or the engine is away."""
        if not await self._leads(0):
            return None
        state = await self._state()
        try:
            listed = await self._launcher.poll()
        except EngineAway as away:
            log.warning("the engine does not answer", reason=str(away))
            await self._write([], [], state.away(self._store.clock.now_us(), str(away)))
            return None
        changed = await self._reconcile(listed)
        seen = await self._look()
        now = self._store.clock.now_us()
        failed = [row for row in changed if row.status == "failed"]
        state = _remember(state, seen, failed, self._rule.scale, now)
        state = state.answered(self._rule.scale, self._launcher.describe())
        seconds, rule = now / MICROSECONDS, self._rule.scale
        state = replace(state, untaken=state.untaken.seen(seen.signals, seconds))
        decision = decide(seen.signals, rule, state.memory, seconds, state.untaken)
        state = state.decided(seen.signals, seen.too_long, decision, now)
        await self._carry_out(seen, decision, state)
        return decision

    async def _leads(self, renewed_seconds_max: float) -> bool:
        """Tell whether this process holds the lease; renew it if that was too long ago."""
        sent_at = self._store.clock.monotonic()
        if sent_at - self._renewed_at < renewed_seconds_max:
            return True
        if not await self._store.achange(lambda tx: tx.scaling.lead(*self._lease)):
            return False
        self._renewed_at = sent_at
        return True

    async def _state(self) -> ScalerState:
        row = await self._store.aread(lambda reading: reading.scaling.find(self._rule.name))
        return ScalerState.from_json(row.state if row else None)

    async def _reconcile(self, listed: Sequence[Block]) -> list[BlockRow]:
        """Bring the rows of blocks up to date with the engine's list; return what changed."""
        name = self._rule.name

        def known(reading: SqlReading) -> list[BlockRow]:
            # A block that has run for long is not among the newest where others come and go.
            newest, live = reading.scaling.blocks(name), reading.scaling.live_blocks(name)
            return list({row.name: row for row in (*newest, *live)}.values())

        rows = await self._store.aread(known)
        now = self._store.clock.now_us()
        new, changed = block_rows.compare(rows, listed, self._rule.name, now)
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
            newest = scaling.blocks(self._rule.name, BLOCKS_LOOKED_AT)
            ended = {block.name for block in newest if block.finished_at}
            drained = {scope.worker for scope in paused_scopes(reading)}
            free = [
                (worker.block, max(worker.slots - busy.get(worker.name, 0), 0))
                for worker in reading.list_workers(WORKERS_LISTED_MAX)
                if worker.block not in ended
                and worker.name not in drained
                and _is_free(worker, now, needed_us)
            ]
            blocks = scaling.live_blocks(self._rule.name)
            live = [block for block in blocks if block.registered_at and not block.left_at]
            ours = {block.name for block in live}
            waiting = [one for one in blocks if one.registered_at is None]
            oldest = min((one.oldest_at for one in fits), default=now)
            return _Seen(
                newest,
                blocks,
                ScaleSignals(
                    waiting=sum(one.jobs for one in fits),
                    oldest_seconds=max(now - oldest, 0) / MICROSECONDS,
                    running=sum(busy.values()),
                    free_slots=sum(slots for _, slots in free),
                    queued_blocks=tuple(one.name for one in waiting if one.status != "running"),
                    starting_blocks=sum(one.status == "running" for one in waiting),
                    live_blocks=len(live),
                    young_blocks=sum(is_young(block, now) for block in live),
                    idle_slots=sum(slots for block, slots in free if block in ours),
                ),
                sum(one.jobs for one in backlog if not one.fits),
            )

        return await self._store.aread(look)

    async def _carry_out(self, seen: _Seen, decision: ScaleDecision, state: ScalerState) -> None:
        """Write the rows of a decision, and only then cancel and order."""
        now = self._store.clock.now_us()
        surplus = [row for row in seen.live if row.name in decision.cancel]
        cancelled = [row._replace(detail=CANCELLED) for row in surplus]
        orders = [
            block_rows.ordered(f"{prefix}{secrets.token_hex(5)}", self._rule.name, now)
            for prefix in [block_prefix(self._rule.name)] * decision.launch
        ]
        await self._write(orders, cancelled, state)
        if decision.launch or decision.cancel:
            log.info("decided", launch=len(orders), cancel=len(surplus), why=decision.reason)
        try:
            await self._launcher.cancel([row.engine_id for row in surplus if row.engine_id])
        except (EngineAway, BlockRefused) as error:
            log.warning("blocks were not cancelled", reason=str(error))
        if orders:
            await self._order(orders, self._idle_seconds(seen, len(orders)), state)

    async def _order(
        self, orders: list[BlockRow], idle_seconds: list[float | None], state: ScalerState
    ) -> None:
        """Order blocks one by one; the first that fails ends the round."""
        changed: list[BlockRow] = []
        for position, row in enumerate(orders):
            now = self._store.clock.now_us()
            if self._stopping.is_set() or not await self._leads(self._lease[3] / 3):
                changed += [block_rows.not_sent(one, now) for one in orders[position:]]
                break
            try:
                await self._launcher.launch(
                    row.name, self._command(row.name, idle_seconds[position])
                )
            except (EngineAway, BlockRefused) as error:
                log.warning("a block was not ordered", reason=str(error))
                now = self._store.clock.now_us()
                if isinstance(error, BlockRefused):
                    changed.append(block_rows.refused(row, str(error), now))
                    state = state.failed(1, now / MICROSECONDS)
                else:
                    changed.append(block_rows.unanswered(row))
                    state = state.away(now, str(error))
                changed += [block_rows.not_sent(one, now) for one in orders[position + 1 :]]
                break
        if changed:
            await self._write([], changed, state)

    def _idle_seconds(self, seen: _Seen, orders: int) -> list[float | None]:
        """Return after how long the pilot of each new block leaves; None for those that stay."""
        staying = min(max(self._rule.scale.min_blocks - seen.signals.blocks, 0), orders)
        starts = ((b.ordered_at, b.registered_at) for b in seen.newest if b.registered_at)
        took = [(registered - ordered) / MICROSECONDS for ordered, registered in starts]
        leaving = idle_exit_seconds(self._rule.idle_seconds, tuple(took[:STARTS_REMEMBERED]))
        return [None] * staying + [leaving] * (orders - staying)

    async def _write(
        self, new: list[BlockRow], changed: list[BlockRow], state: ScalerState | None
    ) -> None:
        if new or changed or state is not None:
            text = state.as_json() if state is not None else None
            await self._store.achange(
                lambda tx: tx.scaling.change(self._lease, text, new, changed, BLOCKS_KEPT_SECONDS)
            )


def _is_free(worker: WorkerRow, now: int, needed_us: int) -> bool:
    """Tell whether a worker is alive and has time for the longest job that waits."""
    is_alive = worker.last_seen_at >= now - int(SILENT_SECONDS * MICROSECONDS)
    return is_alive and (worker.drains_at is None or worker.drains_at - now >= needed_us)


def _remember(
    state: ScalerState, seen: _Seen, failed: Sequence[BlockRow], rule: ScaleRule, now: int
) -> ScalerState:
    """Forget failures that are over, then note those of this round."""
    memory = state.memory
    for block in seen.newest:
        if memory.failures and block.registered_at:
            came_at = block.registered_at / MICROSECONDS
            memory = memory.came(came_at, has_lived=has_lived(block, now))
    pilots_died = any(died_young(block) for block in failed)
    state = replace(state, memory=memory)
    state = state.failed(len(failed), now / MICROSECONDS, pilots_died=pilots_died)
    memory = state.memory.faded(now / MICROSECONDS, rule, seen.signals.tried)
    return replace(state, memory=memory)

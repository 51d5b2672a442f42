"""Claim jobs: rotate over workspaces, and within each take them by priority and age.

A claimer takes only jobs of kinds that it can run. While a new kind is being deployed, some workers
do not know it yet. A claimer that meets jobs of other kinds at the front of the queue *sets them
aside*: they are no longer eligible, and their rows say which kind they wait for. So they cost the
next claim nothing, however many they are. Every claimer *recalls* what is set aside of its own
kinds, a few jobs at a time, before it claims.

    what is met                            what happens
    -------------------------------------  ------------------------------------------------------
    a kind that no worker runs             set aside until a worker runs it; the job says so
    a kind that only other workers run     set aside; they are notified, and recall it
    more than one claim sets aside         the claimer claims again at once
    the job is cancelled, or paused        as with any queued job; it is no longer set aside
    an operator pauses a kind              set aside, as if no worker ran it, until it is resumed
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from ade.domain.agent_pool import is_agent_pool
from ade.domain.events import EventType, work_topic
from ade.domain.job import LOCAL_POOL, Cause, Status
from ade.domain.order import share_places
from ade.domain.queue_pause import EVERYTHING, PauseScope, paused_kinds
from ade.stages.kernel_settings import KernelSettings
from ade.stages.queue_pauses import paused_scopes
from ade.stages.transitions import checked_cause
from ade.store.dialects.dialect import FIRST_ID
from ade.store.port import Transaction
from ade.store.rows import Claim, ClaimQuery

WORKSPACES_PER_CLAIM_MAX = 16
FRONT = -(1 << 62)
NO_LIMIT = 1 << 62
BULK = 50
FRONT_US_MAX = 1_000_000
ALONE_US_MAX = 10_000
# How often a claimer looks for jobs of its kinds that were set aside.
RECALL_US_MIN = 100_000
# A claim looks at so many jobs at once, and so often, to set aside those of other kinds.
SET_ASIDE_JOBS_MAX = 1000
SET_ASIDE_ROUNDS_MAX = 2


@dataclass(slots=True)
class Rotation:
    """Remember which workspace was served last, and how far; each claimer keeps its own.

    A claimer that takes `BULK` jobs or more at a time goes on, for up to a second, at the rank that
    it reached. The index entries of the jobs that it took before may still be at the front, and
    PostgreSQL would read over these dead entries with each claim. A job that is inserted before
    that rank is then claimed up to a second late. Such a claimer also looks for other workspaces a
    hundred times a second only, not with each claim.
    """

    last_served: str = FIRST_ID
    may_have_more: bool = False
    reached: int = FRONT
    front_seen_at: int = FRONT
    alone_seen_at: int = FRONT
    recalled_at: int = FRONT
    # Whether the last claim stopped before it had set all jobs of other kinds aside.
    has_more_to_set_aside: bool = False

    def floor(self, workspace_id: str, places: int, now_us: int) -> int:
        """Return the rank to begin at."""
        goes_on = workspace_id == self.last_served and self.may_have_more and places >= BULK
        if goes_on and now_us - self.front_seen_at < FRONT_US_MAX:
            return self.reached
        self.front_seen_at = now_us
        return FRONT

    def served(self, workspace_id: str, taken: list[Claim], places: int) -> None:
        """Remember which workspace was served, and how far."""
        self.last_served = workspace_id
        self.may_have_more = len(taken) == places
        self.reached = taken[-1].rank if taken else FRONT


@dataclass(slots=True)
class ClaimRequest:
    """Ask for up to `limit` jobs of a pool, of these kinds; None is for claimers that run all.

    A claimer that must stop at a known time takes no job whose timeout is longer than it has left.
    """

    owner: str
    limit: int
    pool: str = LOCAL_POOL
    rotation: Rotation = field(default_factory=Rotation)
    kinds: frozenset[str] | None = None
    timeout_ms_max: int = NO_LIMIT


def claim(
    settings: KernelSettings, tx: Transaction, requests: list[ClaimRequest]
) -> list[list[Claim]]:
    """Claim for each request as many eligible jobs as it has room for."""
    if settings.safe_mode:
        return [[] for _ in requests]
    paused = paused_scopes(tx)
    return [_claim(settings, tx, request, paused) for request in requests]


def _claim(
    settings: KernelSettings, tx: Transaction, request: ClaimRequest, paused: list[PauseScope]
) -> list[Claim]:
    if request.limit <= 0 or EVERYTHING in paused or PauseScope(worker=request.owner) in paused:
        return []
    claimed: list[Claim] = []
    request.rotation.has_more_to_set_aside = False
    _recall(tx, request, {scope.kind for scope in paused if scope.workspace_id is None})
    closed = {scope.workspace_id for scope in paused if scope.kind is None and not scope.worker}
    waiting = _open_workspaces(tx, request, closed) if closed else _workspaces_in_turn(tx, request)
    while waiting and len(claimed) < request.limit:
        more = []
        for workspace_id, places in share_places(waiting, request.limit - len(claimed)):
            kinds = _kinds(settings, request, paused, workspace_id)
            taken = _take(settings, tx, request, workspace_id, places, kinds)
            claimed += taken
            settings.drain_meter.mark(tx.now_us, workspace_id, len(taken))
            request.rotation.served(workspace_id, taken, places)
            if request.rotation.may_have_more:
                more.append(workspace_id)
        waiting = more
    tx.notify(*[job.id for job in claimed])
    return claimed


def _take(
    settings: KernelSettings,
    tx: Transaction,
    request: ClaimRequest,
    workspace_id: str,
    places: int,
    kinds: frozenset[str] | None,
) -> list[Claim]:
    """Take jobs from where the last claim stopped; if these are too few, from the front."""
    floor = request.rotation.floor(workspace_id, places, tx.now_us)
    if kinds is not None and not kinds:  # all that it could take is paused here
        return []
    query = _query(settings, tx, request, workspace_id, kinds)
    taken = _take_runnable(tx, request, query._replace(limit=places, floor=floor))
    if floor > FRONT and len(taken) < places:
        taken += _take_runnable(tx, request, query._replace(limit=places - len(taken), floor=FRONT))
    return taken


def _take_runnable(tx: Transaction, request: ClaimRequest, query: ClaimQuery) -> list[Claim]:
    """Take jobs of the claimer's kinds; set those of other kinds that it meets aside."""
    taken, passed_over = tx.claim(query)
    rounds = 0
    while passed_over and rounds < SET_ASIDE_ROUNDS_MAX:
        if not tx.set_aside(query, SET_ASIDE_JOBS_MAX):
            return taken
        tx.notify(work_topic(query.pool))
        rounds += 1
        more, passed_over = tx.claim(query._replace(limit=query.limit - len(taken)))
        taken += more
        passed_over = passed_over and len(taken) < query.limit
    request.rotation.has_more_to_set_aside |= passed_over
    return taken


def _recall(tx: Transaction, request: ClaimRequest, paused: Collection[str | None]) -> None:
    """Put jobs of the claimer's kinds that were set aside back into the queue, as many as fit."""
    rotation, room = request.rotation, request.limit
    if request.kinds is None or tx.now_us - rotation.recalled_at < RECALL_US_MIN:
        return
    for kind in tx.kinds_set_aside(request.pool, request.kinds.difference(paused)):
        if room > 0:
            room -= tx.recall(request.pool, kind, room)
    if room == request.limit:
        rotation.recalled_at = tx.now_us


def _workspaces_in_turn(tx: Transaction, request: ClaimRequest) -> list[str]:
    """List workspaces with work, beginning after the one that was served last.

    One statement is enough while there are few; with many, a second one finds those after the last.
    While a single workspace has work, it is enough to see that no other has.
    """
    last, size = request.rotation.last_served, WORKSPACES_PER_CLAIM_MAX
    if request.rotation.may_have_more and _is_alone(tx, request):
        return [last]
    first = tx.next_workspaces(request.pool, FIRST_ID, size)
    if len(first) < size:
        later = [ws for ws in first if ws > last]
    else:
        later = tx.next_workspaces(request.pool, last, size)
    return (later + [ws for ws in first if ws <= last])[:size]


def _open_workspaces(
    tx: Transaction, request: ClaimRequest, closed: Collection[str | None]
) -> list[str]:
    """List workspaces with work that are not paused, beginning after the one served last."""
    last, found = request.rotation.last_served, list[str]()
    for after, until in ((last, None), (FIRST_ID, last)):
        reached = after
        while page := tx.next_workspaces(request.pool, reached, WORKSPACES_PER_CLAIM_MAX):
            found += [ws for ws in page if ws not in closed and (until is None or ws <= until)]
            reached = page[-1]
            if len(found) >= WORKSPACES_PER_CLAIM_MAX or (until is not None and reached > until):
                break
    return found[:WORKSPACES_PER_CLAIM_MAX]


def _is_alone(tx: Transaction, request: ClaimRequest) -> bool:
    """Tell whether only the workspace that was served last has work."""
    rotation = request.rotation
    if request.limit >= BULK and tx.now_us - rotation.alone_seen_at < ALONE_US_MAX:
        return True
    if tx.others_wait(request.pool, rotation.last_served):
        return False
    rotation.alone_seen_at = tx.now_us
    return True


def _kinds(
    settings: KernelSettings, request: ClaimRequest, paused: list[PauseScope], workspace_id: str
) -> frozenset[str] | None:
    """Return which kinds a claimer may take in a workspace; None for all."""
    off = paused_kinds(paused, workspace_id)
    if not off:
        return request.kinds
    return (settings.contract_kinds if request.kinds is None else request.kinds) - off


def _query(
    settings: KernelSettings,
    tx: Transaction,
    request: ClaimRequest,
    workspace_id: str,
    kinds: frozenset[str] | None,
) -> ClaimQuery:
    by_contract = is_agent_pool(request.pool)
    starts_now = not by_contract
    lease = settings.staleness.claim_expires_at if by_contract else settings.lease.expires_at
    return ClaimQuery(
        workspace_id=workspace_id,
        pool=request.pool,
        limit=0,
        owner=request.owner,
        now=tx.now_us,
        expires_at=lease(tx.now_us),
        started_at=tx.now_us if starts_now else None,
        event_type=(EventType.STARTED if starts_now else EventType.DISPATCHED).value,
        cause=checked_cause(Status.QUEUED, Status.RUNNING, Cause.CLAIMED),
        floor=FRONT,
        kinds=kinds,
        timeout_ms_max=request.timeout_ms_max,
    )

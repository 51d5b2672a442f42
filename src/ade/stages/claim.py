"""Hand out jobs: each workspace in turn, and within it by priority and age."""

from dataclasses import dataclass, field

from ade.domain.events import EventType
from ade.domain.job import Cause, Status
from ade.domain.order import share_turns
from ade.stages.rules import LOCAL, Rules
from ade.stages.transitions import checked_cause
from ade.store.dialects.base import FIRST_ID
from ade.store.port import Transaction
from ade.store.rows import Ask, Claim

WORKSPACES_PER_CLAIM_MAX = 16
FRONT = -(1 << 62)
BULK = 50
FRONT_US_MAX = 1_000_000
ALONE_US_MAX = 10_000


@dataclass(slots=True)
class Rotation:
    """Remember whose turn it was last and if it may have more; each claimer keeps its own.

    Who takes dozens at a time goes on, for up to a second, where it was in the line: what it took
    before may still lie at the front, dead, and PostgreSQL would walk over it each time. Someone
    who came to stand before that place is then up to a second late. And it looks for other
    workspaces a hundred times a second, not each time.
    """

    last_served: str = FIRST_ID
    may_have_more: bool = False
    reached: int = FRONT
    front_seen_at: int = FRONT
    alone_seen_at: int = FRONT

    def floor(self, workspace_id: str, places: int, now_us: int) -> int:
        """Return where in the line to begin."""
        goes_on = workspace_id == self.last_served and self.may_have_more and places >= BULK
        if goes_on and now_us - self.front_seen_at < FRONT_US_MAX:
            return self.reached
        self.front_seen_at = now_us
        return FRONT

    def served(self, workspace_id: str, taken: list[Claim], places: int) -> None:
        """Remember who was served, and how far."""
        self.last_served = workspace_id
        self.may_have_more = len(taken) == places
        self.reached = taken[-1].rank if taken else FRONT


@dataclass(slots=True)
class ClaimRequest:
    """Ask for up to `limit` jobs."""

    owner: str
    limit: int
    pool: str = LOCAL
    rotation: Rotation = field(default_factory=Rotation)


def claim(rules: Rules, tx: Transaction, asks: list[ClaimRequest]) -> list[list[Claim]]:
    """Claim for each asker what it has room for, if anything is there."""
    if rules.safe_mode:
        return [[] for _ in asks]
    return [_claim(rules, tx, ask) for ask in asks]


def _claim(rules: Rules, tx: Transaction, ask: ClaimRequest) -> list[Claim]:
    if ask.limit <= 0:
        return []
    claimed: list[Claim] = []
    waiting = _in_turn(tx, ask)
    while waiting and len(claimed) < ask.limit:
        more = []
        for workspace_id, places in share_turns(waiting, ask.limit - len(claimed)):
            taken = _take(rules, tx, ask, workspace_id, places)
            claimed += taken
            rules.drained.mark(tx.now_us, workspace_id, len(taken))
            ask.rotation.served(workspace_id, taken, places)
            if ask.rotation.may_have_more:
                more.append(workspace_id)
        waiting = more
    tx.notify(*[job.id for job in claimed])
    return claimed


def _take(
    rules: Rules, tx: Transaction, ask: ClaimRequest, workspace_id: str, places: int
) -> list[Claim]:
    floor = ask.rotation.floor(workspace_id, places, tx.now_us)
    taken = tx.claim(_ask(rules, tx, ask, workspace_id, places, floor))
    if floor > FRONT and len(taken) < places:
        taken += tx.claim(_ask(rules, tx, ask, workspace_id, places - len(taken), FRONT))
    return taken


def _in_turn(tx: Transaction, ask: ClaimRequest) -> list[str]:
    """List workspaces with work, beginning after the one that was served last.

    One look is enough while there are few; with many, a second finds those whose turn it is. While
    one workspace alone has work, it is enough to see that no other has.
    """
    last, size = ask.rotation.last_served, WORKSPACES_PER_CLAIM_MAX
    if ask.rotation.may_have_more and _is_alone(tx, ask):
        return [last]
    first = tx.next_workspaces(ask.pool, FIRST_ID, size)
    if len(first) < size:
        later = [ws for ws in first if ws > last]
    else:
        later = tx.next_workspaces(ask.pool, last, size)
    return (later + [ws for ws in first if ws <= last])[:size]


def _is_alone(tx: Transaction, ask: ClaimRequest) -> bool:
    """Tell whether no workspace has work but the one that was served last."""
    rotation = ask.rotation
    if ask.limit >= BULK and tx.now_us - rotation.alone_seen_at < ALONE_US_MAX:
        return True
    if tx.others_wait(ask.pool, rotation.last_served):
        return False
    rotation.alone_seen_at = tx.now_us
    return True


def _ask(
    rules: Rules, tx: Transaction, ask: ClaimRequest, workspace_id: str, places: int, floor: int
) -> Ask:
    starts_now = ask.pool == LOCAL
    return Ask(
        workspace_id=workspace_id,
        pool=ask.pool,
        limit=places,
        owner=ask.owner,
        now=tx.now_us,
        expires_at=rules.lease.expires_at(tx.now_us),
        started_at=tx.now_us if starts_now else None,
        event_type=(EventType.STARTED if starts_now else EventType.DISPATCHED).value,
        cause=checked_cause(Status.QUEUED, Status.RUNNING, Cause.CLAIMED),
        floor=floor,
    )

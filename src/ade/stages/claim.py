"""Hand out jobs: each workspace in turn, and within it by priority and age."""

from dataclasses import dataclass, field

from ade.domain.events import EventType
from ade.domain.order import share_turns
from ade.stages.rules import LOCAL, Rules, job_topic
from ade.store.dialects.base import FIRST_ID
from ade.store.port import Transaction
from ade.store.rows import Ask, Claim

WORKSPACES_PER_CLAIM_MAX = 16


@dataclass(slots=True)
class Rotation:
    """Remember whose turn it was last and if it may have more; each claimer keeps its own."""

    last_served: str = FIRST_ID
    may_have_more: bool = False


@dataclass(slots=True)
class ClaimAsk:
    """Ask for up to `limit` jobs."""

    owner: str
    limit: int
    pool: str = LOCAL
    rotation: Rotation = field(default_factory=Rotation)


def claim(rules: Rules, tx: Transaction, asks: list[ClaimAsk]) -> list[list[Claim]]:
    """Claim for each asker what it has room for, if anything is there."""
    if rules.safe_mode:
        return [[] for _ in asks]
    return [_claim(rules, tx, ask) for ask in asks]


def _claim(rules: Rules, tx: Transaction, ask: ClaimAsk) -> list[Claim]:
    if ask.limit <= 0:
        return []
    claimed: list[Claim] = []
    waiting = _in_turn(tx, ask)
    while waiting and len(claimed) < ask.limit:
        more = []
        for workspace_id, places in share_turns(waiting, ask.limit - len(claimed)):
            taken = tx.claim(_ask(rules, tx, ask, workspace_id, places))
            claimed += taken
            rules.drained.mark(tx.now_us, workspace_id, len(taken))
            full = len(taken) == places
            ask.rotation.last_served, ask.rotation.may_have_more = workspace_id, full
            if full:
                more.append(workspace_id)
        waiting = more
    tx.wake(*[job_topic(job.id) for job in claimed])
    return claimed


def _in_turn(tx: Transaction, ask: ClaimAsk) -> list[str]:
    """List workspaces with work, beginning after the one that was served last.

    One look is enough while there are few; with many, a second finds those whose turn it is. While
    one workspace alone has work, it is enough to see that no other has.
    """
    last, size = ask.rotation.last_served, WORKSPACES_PER_CLAIM_MAX
    if ask.rotation.may_have_more and not tx.others_wait(ask.pool, last):
        return [last]
    first = tx.next_workspaces(ask.pool, FIRST_ID, size)
    if len(first) < size:
        later = [ws for ws in first if ws > last]
    else:
        later = tx.next_workspaces(ask.pool, last, size)
    return (later + [ws for ws in first if ws <= last])[:size]


def _ask(rules: Rules, tx: Transaction, ask: ClaimAsk, workspace_id: str, places: int) -> Ask:
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
    )

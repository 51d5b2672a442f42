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
    """Remember whose turn it is next; each claimer keeps its own."""

    page_after: str = FIRST_ID
    last_served: str = FIRST_ID

    def order(self, workspaces: list[str]) -> list[str]:
        """Begin with the workspace after the one that was served last."""
        later = [ws for ws in workspaces if ws > self.last_served]
        return later + [ws for ws in workspaces if ws <= self.last_served]


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
    waiting = ask.rotation.order(_next_page(tx, ask))
    while waiting and len(claimed) < ask.limit:
        more = []
        for workspace_id, places in share_turns(waiting, ask.limit - len(claimed)):
            taken = tx.claim(_ask(rules, tx, ask, workspace_id, places))
            claimed += taken
            ask.rotation.last_served = workspace_id
            if len(taken) == places:
                more.append(workspace_id)
        waiting = more
    rules.drained.mark(tx.now_us, len(claimed))
    for job in claimed:
        tx.wake(job_topic(job.id))
    return claimed


def _next_page(tx: Transaction, ask: ClaimAsk) -> list[str]:
    """List workspaces with work; if there are more than a page, the next claim sees the next."""
    rotation, size = ask.rotation, WORKSPACES_PER_CLAIM_MAX
    page = tx.next_workspaces(ask.pool, rotation.page_after, size)
    if not page and rotation.page_after != FIRST_ID:
        page = tx.next_workspaces(ask.pool, FIRST_ID, size)
    rotation.page_after = page[-1] if len(page) == size else FIRST_ID
    return page


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

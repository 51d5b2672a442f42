"""Keep leases, and bring back what was asked of the jobs meanwhile."""

from ade.domain.errors import LeaseLost
from ade.stages.rules import Rules
from ade.store.port import Transaction
from ade.store.rows import Held, Renewal, Renewed


def lost(lease: Held) -> LeaseLost:
    """Say that someone no longer holds the lease that it speaks of."""
    return LeaseLost(f"The lease on job {lease.id} was lost: attempt {lease.fence} is over.")


def renew(rules: Rules, tx: Transaction, held: list[Held]) -> list[Renewed | LeaseLost]:
    """Renew all leases in one statement; whoever holds none any more is told so."""
    until = rules.lease.expires_at(tx.now_us)
    kept = {Held(*row[:3]): row for row in tx.renew([Renewal(*lease, until) for lease in held])}
    return [kept.get(lease) or lost(lease) for lease in held]

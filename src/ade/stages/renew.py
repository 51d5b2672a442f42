"""Renew leases; the answer carries the stop requests for their jobs."""

from ade.domain.errors import LeaseLost
from ade.stages.kernel_settings import KernelSettings
from ade.store.port import Transaction
from ade.store.rows import LeaseRef, Renewal, Renewed


def lease_lost(lease: LeaseRef) -> LeaseLost:
    """Make the error for a request that carries an old fence."""
    return LeaseLost(f"The lease on job {lease.id} was lost: attempt {lease.fence} is over.")


def renew(
    settings: KernelSettings, tx: Transaction, leases: list[LeaseRef]
) -> list[Renewed | LeaseLost]:
    """Renew all leases in one statement; for a lost one, LeaseLost stands in its place."""
    until = settings.lease.expires_at(tx.now_us)
    renewed = tx.renew([Renewal(*lease, until) for lease in leases])
    kept = {LeaseRef(*row[:3]): row for row in renewed}
    return [kept.get(lease) or lease_lost(lease) for lease in leases]

"""Append what running jobs write: only the holder of the lease may, and nothing twice.

A worker sends batches of pieces until it knows that they are stored, and it may send one again: a
batch that ends before what is stored already is passed over. The places in the log of the job are
given here, after those of earlier attempts.
"""

from dataclasses import dataclass

from ade.domain.errors import LeaseLost
from ade.domain.events import output_topic
from ade.domain.output import PieceBatch
from ade.stages.kernel_settings import KernelSettings
from ade.stages.renew import lease_lost
from ade.store.port import Transaction
from ade.store.rows import DroppedOutput, HeldOutput, LeaseRef, OutputBatch

# The output of so many attempts of a job is kept; that of earlier ones is deleted.
ATTEMPTS_KEPT = 10


@dataclass(frozen=True, slots=True)
class OutputAppend:
    """Hold output of an attempt; what lies between the places `dropped` is no longer kept."""

    lease: LeaseRef
    batches: tuple[PieceBatch, ...]
    dropped: tuple[int, int] | None = None


def append_output(
    settings: KernelSettings, tx: Transaction, appends: list[OutputAppend]
) -> list[LeaseLost | None]:
    """Append output; for an attempt that lost its lease nothing is stored."""
    held = {LeaseRef(*row[:3]): row for row in tx.hold_output([one.lease for one in appends])}
    known = [one for one in appends if one.lease in held]
    tx.insert_output([row for one in known for row in _rows(one, held[one.lease], tx.now_us)])
    tx.drop_output([DroppedOutput(*one.lease, *one.dropped) for one in known if one.dropped])
    begins = [one.lease for one in known if held[one.lease].ends is None]
    tx.drop_attempts(
        [
            lease._replace(fence=lease.fence - ATTEMPTS_KEPT)
            for lease in begins
            if lease.fence > ATTEMPTS_KEPT
        ]
    )
    tx.notify(*[output_topic(one.lease.id) for one in known])
    return [None if one.lease in held else lease_lost(one.lease) for one in appends]


def _rows(append: OutputAppend, held: HeldOutput, now_us: int) -> list[OutputBatch]:
    seq, ends = held.seq or 0, held.ends or 0
    workspace_id, job_id, attempt = append.lease
    rows = []
    for batch in append.batches:
        if batch.starts >= ends:
            seq += batch.piece_count
            place = (seq, attempt, batch.starts, batch.ends, now_us)
            rows.append(OutputBatch(workspace_id, job_id, *place, batch.pieces))
    return rows

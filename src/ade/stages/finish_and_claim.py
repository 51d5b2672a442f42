"""Record the attempts that ended and claim the next jobs, in one transaction.

A worker that has both to do saves a commit, and what ended may have freed what it claims.
"""

from dataclasses import dataclass
from itertools import islice

from ade.domain.errors import LeaseLost
from ade.stages.claim import ClaimRequest, claim
from ade.stages.finish import Finish, Finished, finish
from ade.stages.kernel_settings import KernelSettings
from ade.store.port import Transaction
from ade.store.rows import Claim


@dataclass(frozen=True, slots=True)
class FinishAndClaim:
    """Hold the attempts that ended and what the worker has room for."""

    finishes: list[Finish]
    claim: ClaimRequest


@dataclass(frozen=True, slots=True)
class FinishedAndClaimed:
    """Hold what became of the attempts that ended, and the jobs that were claimed."""

    finished: list[Finished | LeaseLost]
    claims: list[Claim]


def finish_and_claim(
    settings: KernelSettings, tx: Transaction, requests: list[FinishAndClaim]
) -> list[FinishedAndClaimed]:
    """Finish for every request, then claim for every request."""
    finished = iter(finish(settings, tx, [end for one in requests for end in one.finishes]))
    claims = claim(settings, tx, [one.claim for one in requests])
    return [
        FinishedAndClaimed(list(islice(finished, len(one.finishes))), taken)
        for one, taken in zip(requests, claims, strict=True)
    ]

"""A worker's turn: record what just ended and claim what comes next, in one transaction."""

from dataclasses import dataclass

from ade.domain.errors import LeaseLost
from ade.stages.claim import ClaimAsk, claim
from ade.stages.finish import Finished, Recorded, finish
from ade.stages.rules import Rules
from ade.store.port import Transaction
from ade.store.rows import Claim


@dataclass(frozen=True, slots=True)
class Turn:
    """Hold the attempts that ended and what the worker has room for."""

    ended: list[Finished]
    ask: ClaimAsk


@dataclass(frozen=True, slots=True)
class Turned:
    """Say what became of the attempts that ended, and which jobs come next."""

    recorded: list[Recorded | LeaseLost]
    claimed: list[Claim]


def turn(rules: Rules, tx: Transaction, turns: list[Turn]) -> list[Turned]:
    """Finish for all, then claim for all: what ended may have freed what is claimed."""
    recorded = finish(rules, tx, [attempt for one in turns for attempt in one.ended])
    claimed = claim(rules, tx, [one.ask for one in turns])
    answers, start = [], 0
    for one, claims in zip(turns, claimed, strict=True):
        end = start + len(one.ended)
        answers.append(Turned(recorded[start:end], claims))
        start = end
    return answers

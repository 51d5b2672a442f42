"""What a scaler remembers between its ticks, and what people read of it.

It is JSON in the scaler's row. The process that decides writes it, the next one goes on from it,
and servers read it for their metrics and their health.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ade.domain.scaling import (
    BLAME,
    BLAME_DIED,
    FAILURES_SHOWN_MIN,
    FailureMemory,
    ScaleDecision,
    ScaleRule,
    ScaleSignals,
    UntakenJobs,
)

DECISIONS_KEPT = 20
NEVER_SEEN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Decided:
    """Hold a decision that was carried out, or the last one if it changed nothing."""

    at_us: int
    launch: int
    cancel: int
    reason: str


@dataclass(frozen=True, slots=True)
class ScalerTotals:
    """Count what a scaler did since its row was made."""

    ordered: int = 0
    cancelled: int = 0
    failed: int = 0
    times_away: int = 0


@dataclass(frozen=True, slots=True)
class ScalerState:
    """Hold the failures, the last signals and decisions, and whether the engine answers."""

    memory: FailureMemory = field(default_factory=FailureMemory)
    untaken: UntakenJobs = field(default_factory=UntakenJobs)
    signals: Mapping[str, float] = field(default_factory=dict)
    decisions: tuple[Decided, ...] = ()
    away_since_us: int | None = None
    away_reason: str = ""
    next_order_at_us: int | None = None
    max_blocks: int = 0
    where: str = ""
    totals: ScalerTotals = field(default_factory=ScalerTotals)

    @classmethod
    def from_json(cls, text: str | None) -> "ScalerState":
        """Read a state; one that is missing or of another version begins anew."""
        try:
            kept: dict[str, Any] = json.loads(text or "{}")
            return cls(
                **kept
                | {
                    "memory": FailureMemory(**kept.get("memory", {})),
                    "untaken": UntakenJobs(**kept.get("untaken", {})),
                    "decisions": tuple(Decided(**one) for one in kept.get("decisions", ())),
                    "totals": ScalerTotals(**kept.get("totals", {})),
                }
            )
        except (TypeError, ValueError):
            return cls()

    def as_json(self) -> str:
        """Write the state."""
        return json.dumps(asdict(self))

    def away(self, now_us: int, reason: str) -> "ScalerState":
        """Note that the engine does not answer; the first time counts."""
        if self.away_since_us is not None:
            return replace(self, away_reason=reason)
        totals = replace(self.totals, times_away=self.totals.times_away + 1)
        return replace(self, away_since_us=now_us, away_reason=reason, totals=totals)

    def decided(
        self, signals: ScaleSignals, too_long: int, decision: ScaleDecision, now_us: int
    ) -> "ScalerState":
        """Note a decision; of those that change nothing, only the last is kept."""
        entry = Decided(now_us, decision.launch, len(decision.cancel), decision.reason)
        earlier = [one for one in self.decisions if one.launch or one.cancel]
        seen = asdict(signals) | {"queued_blocks": len(signals.queued_blocks)}
        totals = replace(
            self.totals,
            ordered=self.totals.ordered + decision.launch,
            cancelled=self.totals.cancelled + len(decision.cancel),
        )
        return replace(
            self,
            signals=seen | {"too_long": too_long},
            decisions=(*earlier, entry)[-DECISIONS_KEPT:],
            totals=totals,
        )

    def failed(
        self, blocks: int, now_seconds: float, *, pilots_died: bool = False
    ) -> "ScalerState":
        """Note blocks of one round that failed."""
        totals = replace(self.totals, failed=self.totals.failed + blocks)
        memory = self.memory.failed(now_seconds, blocks, pilots_died=pilots_died)
        return replace(self, memory=memory, totals=totals)

    def answered(self, rule: ScaleRule, where: str) -> "ScalerState":
        """Note that the engine answered, and until when nothing is ordered after failures."""
        memory = self.memory
        backoff_ends_us = int((memory.failed_at_seconds + rule.backoff(memory.failures)) * 1e6)
        return replace(
            self,
            away_since_us=None,
            away_reason="",
            next_order_at_us=backoff_ends_us if memory.failures else None,
            max_blocks=rule.max_blocks,
            where=where,
        )


def trouble(
    name: str, state: ScalerState, lease_expires_at_us: int | None, now_us: int
) -> str | None:
    """Say in one sentence what is wrong with a scaler, or None."""
    if lease_expires_at_us is not None and now_us - lease_expires_at_us > NEVER_SEEN_SECONDS * 1e6:
        minutes = (now_us - lease_expires_at_us) / 60e6
        return f"Scaler {name}: no process decides since {minutes:.0f} min; start `ade scale`."
    if state.away_since_us is not None:
        seconds = (now_us - state.away_since_us) / 1e6
        return f"Scaler {name}: the engine does not answer for {seconds:.0f} s: {state.away_reason}"
    if state.memory.failures >= FAILURES_SHOWN_MIN:
        cause = BLAME_DIED if state.memory.pilots_died else BLAME
        return (
            f"Scaler {name}: {cause[0].lower()}{cause[1:]}, {state.memory.failures} times in a row;"
            " see `ade scale status`."
        )
    return None

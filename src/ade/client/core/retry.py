"""When a request is sent again, and after how long.

Three kinds of refusal are told apart:

| what happened | sent again |
| --- | --- |
| lost on its way, or 500, 502, 503, 504 | `attempts_max` times in all, with growing pauses |
| 429: the queue is full, or too many at once | after `Retry-After`, for `busy_seconds_max` |
| 409 idempotency_in_flight | like 429: the first request with this key is still being answered |
| any other | never |

A request that must not be repeated is sent again only if the server cannot have received it, or
said itself that it did nothing (429, 503).
"""

from collections.abc import Callable
from dataclasses import dataclass

NOTHING_WAS_DONE = frozenset({429, 503})
FAILED_FOR_NOW = frozenset({500, 502, 503, 504})
FIRST_PAUSE_SECONDS = 0.2
# A server that names a pause of an hour is not obeyed for an hour at a time.
RETRY_AFTER_SECONDS_MAX = 60.0


@dataclass(frozen=True)
class RetryPolicy:
    """How often, and for how long, a request is sent again."""

    attempts_max: int = 5
    pause_seconds_max: float = 8.0
    # How long to go on while the queue is full; None is for ever.
    busy_seconds_max: float | None = 60.0
    # Called with the pause in seconds before a request is sent again because the queue is full.
    on_busy: Callable[[float], None] | None = None


@dataclass(frozen=True)
class Refusal:
    """How a request failed; no status means that it was lost on its way."""

    status: int | None = None
    retry_after_seconds: float | None = None
    in_flight: bool = False
    sent: bool = True


class Retrying:
    """Decide about one request: `after` returns how long to wait, or None to give up."""

    def __init__(
        self, policy: RetryPolicy, *, repeatable: bool, random: Callable[[], float]
    ) -> None:
        self._policy = policy
        self._repeatable = repeatable
        self._random = random
        self._failures = 0
        self._pauses = 0
        self._busy_since: float | None = None

    def after(self, refusal: Refusal, now: float) -> float | None:
        """Return the pause before the next attempt, in seconds; None gives up."""
        if refusal.status == 429 or refusal.in_flight:
            return self._busy(refusal, now)
        if refusal.status is not None and refusal.status not in FAILED_FOR_NOW:
            return None
        harmless = not refusal.sent or refusal.status in NOTHING_WAS_DONE
        self._failures += 1
        if self._failures >= self._policy.attempts_max or not (self._repeatable or harmless):
            return None
        return self._pause(refusal)

    def made_progress(self) -> None:
        """Count failures from the beginning: what was lost has been resumed."""
        self._failures = self._pauses = 0
        self._busy_since = None

    def _busy(self, refusal: Refusal, now: float) -> float | None:
        if self._busy_since is None:
            self._busy_since = now
        pause = self._pause(refusal)
        most = self._policy.busy_seconds_max
        if most is not None and now + pause - self._busy_since > most:
            return None
        if self._policy.on_busy is not None:
            self._policy.on_busy(pause)
        return pause

    def _pause(self, refusal: Refusal) -> float:
        """Return what the server asks for, else a growing pause; never exactly the same."""
        most = self._policy.pause_seconds_max
        grown: float = min(most, FIRST_PAUSE_SECONDS * 2.0 ** min(self._pauses, 30))
        self._pauses += 1
        if refusal.retry_after_seconds is not None:
            asked = min(max(refusal.retry_after_seconds, 0.0), RETRY_AFTER_SECONDS_MAX)
            return asked + self._random() * FIRST_PAUSE_SECONDS
        return grown * (0.5 + self._random() / 2)

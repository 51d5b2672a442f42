"""How long a browser stays signed in."""

from dataclasses import dataclass

from ade.domain.units import MICROSECONDS


@dataclass(frozen=True, slots=True)
class SessionRule:
    """End a session that was idle too long, and every session some time after it began."""

    idle_seconds: float = 12 * 3600
    max_seconds: float = 7 * 24 * 3600

    def expires_at(self, created_at: int, now_us: int) -> int:
        """Return when a session that is in use now expires, unless it is used again."""
        idle = now_us + int(self.idle_seconds * MICROSECONDS)
        return min(idle, created_at + int(self.max_seconds * MICROSECONDS))

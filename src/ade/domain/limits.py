"""What a job may use: what it asks for, held against what its workspace may ask for."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache

from ade.domain.errors import LimitExceedsQuota


@dataclass(frozen=True, slots=True)
class Limits:
    """Hold the limits of one job; the unit is the last word of each name."""

    timeout_ms: int
    cpu_ms: int
    memory_mb: int
    max_output_kb: int
    max_artifacts: int

    def as_dict(self) -> dict[str, int]:
        """Return the limits as the API shows them."""
        return asdict(self)

    def as_json(self) -> str:
        """Return the limits as they are stored."""
        return _spelled(self)


@lru_cache(maxsize=1024)
def _spelled(limits: Limits) -> str:
    return json.dumps(limits.as_dict())


def settle(asked: Mapping[str, int], default: Limits, quota: Limits) -> Limits:
    """Give what was asked for, and the default within the quota for the rest.

    Asking for more than the quota is refused, not cut: a job that needs an hour and silently gets
    five minutes fails in a way that nobody understands.
    """
    over = [
        {"field": f"limits.{name}", "asked": value, "quota": getattr(quota, name)}
        for name, value in asked.items()
        if value > getattr(quota, name)
    ]
    if over:
        words = ", ".join(f"{o['field']} {o['asked']} (at most {o['quota']})" for o in over)
        raise LimitExceedsQuota(f"The job asks for more than its quota: {words}.", errors=over)
    return Limits(
        **{
            field.name: asked.get(
                field.name, min(getattr(default, field.name), getattr(quota, field.name))
            )
            for field in fields(Limits)
        }
    )

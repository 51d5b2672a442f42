"""What a job may use: the limits that it asks for, checked against the quota."""

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
        return _limits_json(self)


@lru_cache(maxsize=1024)
def _limits_json(limits: Limits) -> str:
    return json.dumps(limits.as_dict())


def resolve_limits(requested: Mapping[str, int], default: Limits, quota: Limits) -> Limits:
    """Return what was requested, and for the rest the default, at most the quota.

    A request for more than the quota is refused, not cut: a job that needs an hour and silently
    gets five minutes fails in a way that is hard to explain.
    """
    over = [
        {"field": f"limits.{name}", "asked": value, "quota": getattr(quota, name)}
        for name, value in requested.items()
        if value > getattr(quota, name)
    ]
    if over:
        too_much = ", ".join(f"{o['field']} {o['asked']} (at most {o['quota']})" for o in over)
        raise LimitExceedsQuota(f"The job asks for more than its quota: {too_much}.", errors=over)
    return Limits(
        **{
            field.name: requested.get(
                field.name, min(getattr(default, field.name), getattr(quota, field.name))
            )
            for field in fields(Limits)
        }
    )

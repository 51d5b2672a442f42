"""Whether a job gets network access: one rule for all kinds."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class NetworkRule(StrEnum):
    """Say which jobs get network access."""

    NEVER = "never"  # none; a request that asks for it is refused
    IF_ASKED = "if_asked"  # those whose request asks for it
    BY_DEFAULT = "by_default"  # all but those whose request declines it


def asked_for_network(environment: Mapping[str, Any]) -> bool | None:
    """Return whether a request asks for network access; None if it does not say."""
    wanted = environment.get("network_access")
    return None if wanted is None else wanted == "enabled"


def gets_network(rule: NetworkRule, asked: bool | None) -> bool:
    """Tell whether a job gets network access; `asked` is None if its request does not say."""
    if rule is NetworkRule.BY_DEFAULT:
        return asked is not False
    return rule is NetworkRule.IF_ASKED and asked is True

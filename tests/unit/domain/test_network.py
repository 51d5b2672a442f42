"""Who gets network access."""

import pytest

from ade.domain.network import NetworkRule, gets_network


@pytest.mark.parametrize(
    ("rule", "asked", "silent", "declined"),
    [
        ("never", False, False, False),
        ("if_asked", True, False, False),
        ("by_default", True, True, False),
    ],
)
def test_the_rule_decides_together_with_the_request(
    rule: str, asked: bool, silent: bool, declined: bool
) -> None:
    answers = [gets_network(NetworkRule(rule), one) for one in (True, None, False)]
    assert answers == [asked, silent, declined]

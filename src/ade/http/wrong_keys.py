"""Limit how many wrong keys an address may try.

Only failures count, and only failures are refused: a valid key works from an address that has
exceeded the limit, because behind one address there may be many clients. What the limit does not
do is save the query that finds out whether a key is valid. An IPv6 client is its /64.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import Scope

from ade.domain.errors import TooManyWrongKeys
from ade.http.client_address import Networks, client_address, client_network
from ade.telemetry import metrics

WINDOW_SECONDS = 60.0
# Beyond it the address that failed least recently is forgotten.
ADDRESSES_MAX = 10_000


class WrongKeys:
    """Count the wrong keys of each address."""

    def __init__(
        self,
        per_minute: int,
        proxies: Networks,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_minute = per_minute
        self._proxies = proxies
        self._monotonic = monotonic
        self._failed: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def count(self, scope: Scope) -> None:
        """Count a wrong key; raise TooManyWrongKeys if its address has sent too many."""
        metrics.wrong_key()
        now = self._monotonic()
        address = client_network(client_address(scope, self._proxies))
        until, failures = self._failed.pop(address, (0.0, 0))
        if until <= now:
            until, failures = now + WINDOW_SECONDS, 0
        self._failed[address] = (until, failures + 1)
        if len(self._failed) > ADDRESSES_MAX:
            self._failed.popitem(last=False)
        if failures >= self._per_minute:
            raise TooManyWrongKeys(
                "Your address has sent too many keys that are not valid.",
                retry_after_seconds=max(1, round(until - now)),
            )

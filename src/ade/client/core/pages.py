"""Read lists page by page."""

from collections.abc import Callable, Mapping
from typing import Any

from ade.client.core.exchange import call_json, request_of
from ade.client.core.retry import RetryPolicy
from ade.client.core.steps import Call, Emit, Query

PAGE_SIZE = 100


def every(
    path: str,
    policy: RetryPolicy,
    make: Callable[[Mapping[str, Any]], Any],
    query: Query = (),
    limit: int | None = None,
    *,
    paged: bool = True,
) -> Call[None]:
    """Emit the items of a list, newest first, at most `limit` of them."""
    left = limit
    cursor: str | None = None
    while left is None or left > 0:
        size = PAGE_SIZE if left is None else min(PAGE_SIZE, left)
        asked = [*query, *([("limit", size)] if paged else [])]
        asked += [("cursor", cursor)] if cursor else []
        page = yield from call_json(request_of("GET", path, query=asked), policy)
        for item in page["items"][: None if left is None else left]:
            yield Emit(make(item))
        left = None if left is None else left - len(page["items"])
        cursor = page.get("next_cursor")
        if cursor is None:
            return


def filters(**given: Any) -> list[tuple[str, str | int]]:
    """Write filters as query parameters; a list is repeated, None is left out."""
    found: list[tuple[str, str | int]] = []
    for name, value in given.items():
        if value is None:
            continue
        values = [value] if isinstance(value, str | int) else list(value)
        found += [(name, one) for one in values]
    return found

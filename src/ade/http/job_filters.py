"""The filters of lists of jobs and runs, and the page that they find."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, StringConstraints

from ade.app.times import microseconds
from ade.domain.errors import InvalidRequest
from ade.domain.ids import is_uuid
from ade.domain.job import Status
from ade.http.auth import Authorization
from ade.http.context import AppContext
from ade.http.paging import PAGE_SIZE, cursor_after, read_cursor
from ade.store.port import Reading
from ade.store.rows import JobRow

# How many values a filter may have.
VALUES_MAX = 20
NONE: list[Any] = []


def _check_id(value: str) -> str:
    if not is_uuid(value):
        raise ValueError("it is not an identifier")
    return value.lower()


def _reject_number(value: Any) -> Any:
    """Raise for digits alone: 2024 is meant as a year, and would be read as seconds since 1970."""
    if isinstance(value, str) and value.strip().lstrip("+-").replace(".", "", 1).isdigit():
        raise ValueError("it is not a time such as 2026-01-31T09:30:00Z")
    return value


Time = Annotated[AwareDatetime, BeforeValidator(_reject_number)]
Id = Annotated[str, StringConstraints(max_length=60), AfterValidator(_check_id)]


class JobsFound(NamedTuple):
    """Hold a page of jobs, and the cursor of the next one."""

    jobs: list[JobRow]
    next_cursor: str | None


def any_of(name: str, values: Sequence[str]) -> dict[str, Any]:
    """Make a filter of the values of a parameter; without values there is none."""
    if not values:
        return {}
    plain = tuple(dict.fromkeys(str(value) for value in values))
    return {name: plain[0] if len(plain) == 1 else plain}


def submitted_between(after: datetime | None, before: datetime | None) -> dict[str, int]:
    """Make the filters by the time of submission, to the millisecond, as times are shown."""
    found = {}
    if after is not None:
        found["submitted_after"] = microseconds(after) // 1000 * 1000 + 999
    if before is not None:
        found["submitted_before"] = microseconds(before) // 1000 * 1000
    return found


async def find_page(
    context: AppContext,
    auth: Authorization,
    filters: dict[str, Any],
    limit: int | None,
    cursor: str | None,
) -> JobsFound:
    """Find a page of jobs; one more than the limit is read to see whether more follow."""
    _reject_nul(filters)
    size = min(limit or PAGE_SIZE, context.settings.page_size_max)
    before, workspace_id = read_cursor(cursor), auth.workspace.id

    def look(reading: Reading) -> list[JobRow]:
        return reading.list_jobs(workspace_id, filters, before, size + 1)

    found = await context.kernel.read(look)
    more = cursor_after(found[size - 1].id) if len(found) > size else None
    return JobsFound(found[:size], more)


async def count_by_status(
    context: AppContext, auth: Authorization, filters: dict[str, Any]
) -> dict[Status, int]:
    """Count jobs by status."""
    _reject_nul(filters)
    workspace_id = auth.workspace.id
    found = await context.kernel.read(lambda reading: reading.count_jobs(workspace_id, filters))
    return {status: found.get(status.value, 0) for status in Status}


def _reject_nul(filters: dict[str, Any]) -> None:
    texts = [value if isinstance(value, tuple) else (value,) for value in filters.values()]
    if any("\0" in text for several in texts for text in several if isinstance(text, str)):
        raise InvalidRequest("A filter holds the character NUL.")

"""Times as the API writes them: RFC 3339 in UTC with milliseconds."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=4096)
def rfc3339(at_us: int) -> str:
    """Write microseconds since the epoch as a timestamp."""
    at = _EPOCH + timedelta(microseconds=at_us)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def microseconds(at: datetime) -> int:
    """Return microseconds since the epoch of a time with an offset."""
    return (at - _EPOCH) // timedelta(microseconds=1)

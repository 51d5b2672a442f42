"""The events that a job keeps in its own row."""

import json

import pytest

from ade.store import job_log
from ade.store.rows import NewEvent

# What `str.splitlines` takes for the end of a line, and the log does not.
SEPARATORS = ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"]


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_line_ends_at_a_line_feed_only(separator: str) -> None:
    data = json.dumps({"message": f"a{separator}b"}, ensure_ascii=False)
    lines = (
        job_log.first_line(5, "queued", "{}") + "2 6" + job_log.line_after_time("job.failed", data)
    )
    assert job_log.parse("w", "j", lines) == [
        NewEvent("w", "j", 1, 5, "job.queued", "{}"),
        NewEvent("w", "j", 2, 6, "job.failed", data),
    ]


def test_an_empty_log_has_no_events() -> None:
    assert job_log.parse("w", "j", "") == []

"""Check the whole story of every job after the faults are healed."""

import time
from collections import Counter
from datetime import datetime
from typing import Any

from tests.chaos.clients import Acknowledged, Client
from tests.chaos.nemesis import Fault
from tests.chaos.watch import Overlap, Watch
from tests.system.server import ENDED, JOBS, Server

STARTS = {"job.started"}
ENDS = {"job.lost", "job.retried", "job.released", *(f"job.{status}" for status in ENDED)}
# A worker that wakes up kills its children at once; on a busy machine that takes some time.
WAKE_SECONDS = 5.0
SHOWN_MAX = 5
# A holder may feel a fault after it was healed, until its connections are replaced.
FELT_SECONDS = 15.0
# Faults after which an attempt may be lost. A stepped clock is not among them.
LOSES = {"kill", "freeze", "network", "restart"}


def check_job(server: Server, promised: Acknowledged, faults: list[Fault]) -> str:
    """Check one acknowledged job, and return how it ended."""
    job = server.ended_job({"job_id": promised.job_id}, 240)
    events = server.events(job)
    story = [event for event in events if event["event"] in STARTS | ENDS]
    words = [event["event"] for event in story]
    for n, word in enumerate(words):
        assert (word in STARTS) == (n % 2 == 0), (job, words)  # one attempt after the other
    assert sum(word == f"job.{status}" for word in words for status in ENDED) == 1, (job, words)
    assert words[-1] == f"job.{job['status']}", (job, words)
    assert job["attempt"] == words.count("job.started"), (job, words)
    times = [event["at"] for event in events]
    assert times == sorted(times), (job, times)
    _check_end(server, promised, job)
    for begin, end in zip(story[::2], story[1::2], strict=True):
        if end["event"] in {"job.lost", "job.retried"}:
            _check_loss(begin, end, faults, job)
    return f"{job['status']} at attempt {job['attempt']}"


def _check_end(server: Server, promised: Acknowledged, job: dict[str, Any]) -> None:
    """Check that somebody saw this end: the result is the job's own, or ADE says it lost it."""
    if job["status"] == "succeeded":
        outputs = server.result(job)["outputs"]
        assert outputs["result_json"] == promised.token, (job, outputs)
    else:
        assert (job["status"], job["error"]["code"]) == ("failed", "LEASE_LOST"), job


def _check_loss(
    begin: dict[str, Any], end: dict[str, Any], faults: list[Fault], job: dict[str, Any]
) -> None:
    """Check that a fault of its holder in that time lost an attempt, and not a clock."""
    holder = int(begin["data"]["worker"].split(":")[1])
    began, ended = _monotonic(begin), _monotonic(end)
    assert any(
        fault.pid == holder
        and fault.name in LOSES
        and fault.began <= ended
        and fault.ended + FELT_SECONDS >= began
        for fault in faults
    ), (job, begin, end)


def _monotonic(event: dict[str, Any]) -> float:
    """Return when an event was recorded, by the clock of the faults; this host's is not stepped."""
    at = datetime.fromisoformat(event["at"]).timestamp()
    return at - time.time() + time.monotonic()


def unexplained(overlaps: list[Overlap], faults: list[Fault]) -> list[Overlap]:
    """List overlaps in which no holder was frozen: the only documented case."""
    freezes = [fault for fault in faults if fault.name == "freeze"]
    return [
        overlap
        for overlap in overlaps
        if not any(
            freeze.pid in overlap.holders
            and freeze.began <= overlap.at <= freeze.ended + WAKE_SECONDS
            for freeze in freezes
        )
    ]


def check_all(
    server: Server, clients: list[Client], faults: list[Fault], watch: Watch
) -> Counter[str]:
    """Check everything; return how the jobs ended."""
    unexpected = [line for client in clients for line in client.unexpected]
    assert not unexpected, unexpected[:SHOWN_MAX]
    left = unexplained(watch.overlaps, faults)
    jobs = {overlap.token for overlap in left}
    assert not left, f"{len(jobs)} jobs ran twice at once: {left[:SHOWN_MAX]}"
    promised = [one for client in clients for one in client.acknowledged]
    assert len({one.job_id for one in promised}) == len(promised), "two tokens got one job"
    ends = Counter(check_job(server, one, faults) for one in promised)
    # Whatever was not acknowledged was accepted at most once, too.
    open_tokens = sum(client.unacknowledged is not None for client in clients)
    total = count_jobs(server)
    assert len(promised) <= total <= len(promised) + open_tokens, (total, len(promised))
    return ends


def count_jobs(server: Server) -> int:
    """Count the jobs of the workspace, page by page."""
    total, cursor = 0, None
    while True:
        parameters = {"limit": 200} | ({"cursor": cursor} if cursor else {})
        page = server.http.get(JOBS, params=parameters).json()
        total += len(page["items"])
        cursor = page["next_cursor"]
        if cursor is None:
            return total

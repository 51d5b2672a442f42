"""The newest lines of a job's event log, in the job's own row.

The statements that run for every job (insert, claim, end) write their event into the row that they
change anyway: that costs nothing, and the log cannot disagree with the status. What happens to few
jobs goes to the table `events`, and a move pours the row's lines over to it, so the row never holds
more than the few lines of one life: queued, started, ended. Whoever reads the log reads both.

A line is `seq at type data`, ended by a line feed; data is JSON, which has none.
"""

from ade.store.rows import NewEvent


def rest_of_line(at: int, event_type: str, data: str) -> str:
    """Spell a line all but its place in the log, which the statement knows."""
    return f" {at} {event_type} {data}\n"


def first_line(at: int, status: str, data: str) -> str:
    """Spell the line that opens the log of a job which begins in a status."""
    return "1" + rest_of_line(at, f"job.{status}", data)


def started_line(at: int, event_type: str, cause: str, worker: str) -> tuple[str, str]:
    """Spell the line of a claim, in two parts: the number of the attempt comes between."""
    after = f', "cause": "{cause}", "worker": {worker}}}\n'
    return f' {at} {event_type} {{"attempt": ', after


def parse(workspace_id: str, job_id: str, history: str) -> list[NewEvent]:
    """Read the lines back as events."""
    events = []
    for line in history.splitlines():
        seq, at, event_type, data = line.split(" ", 3)
        events.append(NewEvent(workspace_id, job_id, int(seq), int(at), event_type, data))
    return events

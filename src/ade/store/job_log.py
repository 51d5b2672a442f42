"""The newest events of a job, as lines in the job's own row.

The statements that run for every job (insert, claim, end) write their event into the row that they
change anyway: that costs nothing, and the log cannot disagree with the status. Rarer events go to
the table `events`, and a move copies the lines of the row there, so the row never holds more than
the few lines of one life: queued, started, ended. A reader of the log reads both.

A line is `seq at type data` and ends with a line feed. `data` is JSON without line feeds; it may
hold any other character, also those that Python's `splitlines` takes for the end of a line.
"""

from ade.store.rows import NewEvent


def line_after_time(event_type: str, data: str) -> str:
    """Write a line without its position in the log and its time, which the statement adds."""
    return f" {event_type} {data}\n"


def first_line(at: int, status: str, data: str) -> str:
    """Write the first line of a job that begins in a status."""
    return f"1 {at}" + line_after_time(f"job.{status}", data)


def started_line(event_type: str, cause: str, worker: str) -> tuple[str, str]:
    """Write the line of a claim in two parts: the number of the attempt comes between them."""
    after = f', "cause": "{cause}", "worker": {worker}}}\n'
    return f' {event_type} {{"attempt": ', after


def parse(workspace_id: str, job_id: str, lines: str) -> list[NewEvent]:
    """Read the lines of a row as events."""
    events = []
    for line in filter(None, lines.split("\n")):
        seq, at, event_type, data = line.split(" ", 3)
        events.append(NewEvent(workspace_id, job_id, int(seq), int(at), event_type, data))
    return events

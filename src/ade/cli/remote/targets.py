"""``ade targets``: see what holds a lane, and decide about it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ade.cli.remote.connect import connected
from ade.cli.remote.inputs import named_values
from ade.cli.remote.jobs import COLUMNS, JobId, Reason, print_job, row_of
from ade.cli.remote.show import console, note_of, show, show_rows, status

LIST_MAX = 50
TargetId = Annotated[str, typer.Argument(metavar="TARGET", help="The name of a target.")]
Note = Annotated[str | None, typer.Option(help="Kept with the decision.")]

app = typer.Typer(help="See what holds a lane, and decide about it.", no_args_is_help=True)


@app.command("show")
def show_target(target_id: TargetId) -> None:
    """Show which job holds a lane, which one runs, and how many wait."""
    with connected() as client:
        target = client.targets.get(target_id)
        show(target.raw, lambda: _draw(target))


def _draw(target: Any) -> None:
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text(f"{target.id}: ").append_text(status(target.queue_status)))
    for job in target.blocking_jobs:
        tree.add(_branch("held by", job))
    if target.running_job is not None:
        tree.add(_branch("runs", target.running_job))
    tree.add(Text(f"{target.queued} waiting"))
    console().print(tree)


def _branch(word: str, job: Any) -> Any:
    from rich.text import Text

    line = Text(f"{word} {job.id} ({job.job_type}), ").append_text(status(job.status))
    note = note_of(job)
    return line.append(f": {note}" if note else "")


@app.command("jobs")
def jobs(
    target_id: TargetId,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = LIST_MAX,
) -> None:
    """List the jobs of a target, the newest first."""
    with connected() as client:
        found = client.targets.get(target_id).jobs(limit=limit)
        show_rows(found, COLUMNS, row_of, "No job was submitted on this target.")


@app.command("resume")
def resume(target_id: TargetId, job_id: JobId) -> None:
    """Queue the job that holds the lane again."""
    with connected() as client:
        print_job(client.targets.get(target_id).resume(job_id))


@app.command("resolve")
def resolve(
    target_id: TargetId,
    job_id: JobId,
    result: Annotated[str, typer.Option(metavar="JSON", help="The result that a person found.")],
    note: Note = None,
) -> None:
    """Record the result of a job by hand: it counts as succeeded, and the lane is free."""
    value = named_values([f"result={result}"], "--result")["result"]
    with connected() as client:
        print_job(client.targets.get(target_id).resolve(job_id, value, note))


@app.command("clear")
def clear(target_id: TargetId, job_id: JobId, note: Note = None) -> None:
    """Free the lane without a result: the job stays as it ended."""
    with connected() as client:
        print_job(client.targets.get(target_id).clear(job_id, note))


@app.command("cancel")
def cancel(target_id: TargetId, job_id: JobId, reason: Reason = None) -> None:
    """Cancel a job of the target."""
    with connected() as client:
        print_job(client.targets.get(target_id).cancel(job_id, reason))


@app.command("interrupt")
def interrupt(target_id: TargetId, job_id: JobId, reason: Reason = None) -> None:
    """Pause a job of the target; it holds the lane until someone decides."""
    with connected() as client:
        print_job(client.targets.get(target_id).interrupt(job_id, reason))

"""``ade jobs``: submit, list, follow and decide about jobs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ade.cli.remote.connect import connected, failed
from ade.cli.remote.inputs import json_object, named_values
from ade.cli.remote.print_job import (
    download_artifacts,
    exit_of,
    list_artifacts,
    print_events,
    print_logs,
)
from ade.cli.remote.show import (
    duration,
    note_of,
    printable,
    show,
    show_fields,
    show_rows,
    status,
)
from ade.cli.remote.watch import detachable, watched

if TYPE_CHECKING:
    from ade.client.sync.jobs import Job

LIST_MAX = 50
COLUMNS = ("id", "type", "status", "target", "submitted", "took", "note")
JobId = Annotated[str, typer.Argument(metavar="JOB", help="The id of a job.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; it is kept with the job.")]
Timeout = Annotated[
    float | None, typer.Option(min=0, metavar="SECONDS", help="Stop waiting; the job goes on.")
]

app = typer.Typer(help="Submit, list, follow and decide about jobs.", invoke_without_command=True)


@app.callback()
def jobs(
    context: typer.Context,
    statuses: Annotated[
        list[str] | None, typer.Option("--status", help="Only these; several times.")
    ] = None,
    job_type: Annotated[str | None, typer.Option("--type", help="Only this job type.")] = None,
    target: Annotated[str | None, typer.Option(help="Only jobs on this target.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = LIST_MAX,
) -> None:
    """List jobs, the newest first; with a subcommand, do that."""
    if context.invoked_subcommand is not None:
        return
    with connected() as client:
        found = client.jobs.list(status=statuses, job_type=job_type, target_id=target, limit=limit)
        show_rows(found, COLUMNS, row_of, "No job matches.")


def row_of(job: Any) -> tuple[Any, ...]:
    """Return the cells of a job in a list."""
    return (
        job.id,
        job.job_type,
        status(job.status),
        job.target_id,
        job.submitted_at,
        duration(job.duration_ms),
        note_of(job),
    )


@app.command("show")
def show_job(job_id: JobId) -> None:
    """Show a job."""
    with connected() as client:
        print_job(client.jobs.get(job_id))


@app.command("submit")
def submit(
    job_type: Annotated[str, typer.Argument(metavar="TYPE", help="Such as echo.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=VALUE", help="JSON or a text; several times."),
    ] = None,
    inputs_file: Annotated[
        Path | None, typer.Option("--inputs", metavar="FILE", help="A JSON object; - is stdin.")
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="Revision of the document; else a new one each time.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Run on this target, one at a time.")] = None,
    priority: Annotated[str | None, typer.Option(help="Such as high, normal or low.")] = None,
    idempotency_key: Annotated[
        str | None, typer.Option("--key", help="The same key twice is the same job.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end.")] = False,
    timeout: Timeout = None,
) -> None:
    """Submit a job; while the queue is full, wait for a place in it."""
    given = json_object(inputs_file, "--inputs") if inputs_file else {}
    given |= named_values(inputs or (), "--input")
    with connected(patient=True, on_busy=say_busy) as client:
        from ade.client.core.submission import new_key

        job = client.jobs.submit(
            job_type,
            given,
            document_revision_id=revision or new_key(),
            target_id=target,
            priority=priority,
            idempotency_key=idempotency_key,
        )
        if wait:
            job = _waited(job, timeout)
        print_job(job)
        if wait:
            raise typer.Exit(exit_of(job))


def say_busy(seconds: float) -> None:
    """Say that the queue is full."""
    typer.echo(f"ade: the queue is full; trying again in {seconds:.0f} s", err=True)


@app.command("wait")
def wait(job_id: JobId, timeout: Timeout = None) -> None:
    """Wait for the end of a job; the exit code says how it ended."""
    with connected() as client:
        job = _waited(client.jobs.get(job_id), timeout)
        print_job(job)
        raise typer.Exit(exit_of(job))


@app.command("result")
def result(job_id: JobId) -> None:
    """Print the value that a job computed, as JSON; with --json its whole result."""
    with connected() as client:
        envelope = client.jobs.get(job_id).envelope()
        show(envelope.raw, lambda: _print_value(envelope.value))
        if envelope.error is not None:
            raise failed(f"{envelope.error.code}: {envelope.error.message}")


def _print_value(value: Any) -> None:
    import json

    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


@app.command("logs")
def logs(
    job_id: JobId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Until the job ends.")] = False,
    stream: Annotated[str | None, typer.Option(help="stdout, stderr or step.")] = None,
    tail: Annotated[int | None, typer.Option(min=1, help="The last lines only.")] = None,
) -> None:
    """Print what a job wrote, also while it runs."""
    with connected() as client:
        job = client.jobs.get(job_id)
        if follow:
            with detachable(f"Detached. `ade jobs logs -f {job_id}` comes back."):
                print_logs(job.logs(stream=stream))
            return
        text = job.log_text(stream or "stdout", tail)
        typer.echo(printable(text) if sys.stdout.isatty() else text, nl=False)


@app.command("events")
def events(job_id: JobId) -> None:
    """Print what happens to a job, until it has ended."""
    with connected() as client, detachable(f"Detached. `ade jobs events {job_id}` comes back."):
        print_events(client.jobs.get(job_id).events())


@app.command("artifacts")
def artifacts(job_id: JobId) -> None:
    """List the files that a job left."""
    with connected() as client:
        list_artifacts(client.jobs.get(job_id).artifacts())


@app.command("download")
def download(
    job_id: JobId,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to.")] = Path(),
    name: Annotated[str | None, typer.Option(help="Only the file of this name.")] = None,
) -> None:
    """Save the files that a job left, checked against their digests."""
    with connected() as client:
        download_artifacts(client.jobs.get(job_id).artifacts(), out, name)


@app.command("attempts")
def attempts(job_id: JobId) -> None:
    """List the attempts of a job: which worker, when, and how each ended."""
    with connected() as client:
        show_rows(
            client.jobs.get(job_id).attempts(),
            ("attempt", "worker", "status", "started", "ended", "error"),
            lambda one: (
                one.attempt,
                one.worker,
                status(one.status),
                one.started_at,
                one.ended_at,
                (one.error or {}).get("code"),
            ),
            "It has not started yet.",
        )


@app.command("counts")
def counts() -> None:
    """Count the jobs of the workspace by status."""
    with connected() as client:
        found = dict(client.jobs.counts())
        show_fields(found, {name: one for name, one in found.items() if one} or {"jobs": 0})


@app.command("cancel")
def cancel(job_id: JobId, reason: Reason = None) -> None:
    """Cancel a job; one that runs stops a little later."""
    with connected() as client:
        print_job(client.jobs.get(job_id).cancel(reason))


@app.command("interrupt")
def interrupt(job_id: JobId, reason: Reason = None) -> None:
    """Pause a job; `resume` lets it start again."""
    with connected() as client:
        print_job(client.jobs.get(job_id).interrupt(reason))


@app.command("resume")
def resume(job_id: JobId) -> None:
    """Queue a paused job again, or one that failed on its target."""
    with connected() as client:
        print_job(client.jobs.get(job_id).resume())


@app.command("retry")
def retry(job_id: JobId) -> None:
    """Run the same work again as a new job, and show that."""
    with connected() as client:
        print_job(client.jobs.get(job_id).retry())


def print_job(job: Job) -> None:
    """Print what is known of a job."""
    limits = {name: value for name, value in job.limits.items() if value}
    show_fields(
        job.raw,
        {
            "job": job.id,
            "type": job.job_type,
            "status": status(job.status),
            "note": note_of(job),
            "target": job.target_id,
            "priority": job.priority,
            "attempt": job.attempt,
            "again of": job.rerun_of,
            "same as before": "yes" if job.deduplicated else "",
            "submitted": job.submitted_at,
            "started": job.started_at,
            "finished": job.finished_at,
            "took": duration(job.duration_ms),
            "isolation": job.isolation,
            "limits": limits,
        },
    )


def _waited(job: Job, timeout: float | None) -> Any:
    with detachable(
        f"Detached: job {job.id} goes on. Come back: ade jobs wait {job.id}",
        f"Stop it: ade jobs cancel {job.id}",
    ):
        return watched(job, timeout)

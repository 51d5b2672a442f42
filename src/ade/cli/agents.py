"""``ade agents``: which agents have a key."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.settings import settings_or_exit
from ade.domain.enrolment import (
    CODE_MINUTES,
    CODE_MINUTES_MAX,
    OVERLAP_MINUTES,
    OVERLAP_MINUTES_MAX,
)

if TYPE_CHECKING:
    from ade.app.agents import Agents
    from ade.store.rows import NewAgentKey

app = typer.Typer(help="Enrol the agents that run jobs on other hosts.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the agent: the worker_id that it sends.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
CodeMinutes = Annotated[
    int,
    typer.Option("--code-minutes", min=1, max=CODE_MINUTES_MAX, help="How long the code works."),
]


@app.command("enrol")
def enrol(
    name: Name,
    labels: Annotated[
        list[str] | None, typer.Option("--label", help="Label that jobs can ask for; repeatable.")
    ] = None,
    code_minutes: CodeMinutes = CODE_MINUTES,
    as_json: AsJson = False,
) -> None:
    """Give an agent a key, and print the one-time code that it trades for it."""
    made = _on_agents(lambda agents: agents.enrol(name, labels or [], code_minutes))
    _print_made(made, code_minutes, as_json=as_json)


@app.command("rotate")
def rotate(
    name: Name,
    code_minutes: CodeMinutes = CODE_MINUTES,
    overlap_minutes: Annotated[
        int,
        typer.Option(
            "--overlap-minutes",
            min=0,
            max=OVERLAP_MINUTES_MAX,
            help="How long the former key works.",
        ),
    ] = OVERLAP_MINUTES,
    as_json: AsJson = False,
) -> None:
    """Replace an agent's key, and print a new one-time code."""
    made = _on_agents(lambda agents: agents.rotate(name, code_minutes, overlap_minutes))
    _print_made(made, code_minutes, as_json=as_json)


@app.command("revoke")
def revoke(name: Name) -> None:
    """Revoke an agent's keys and its code; servers refuse them within seconds."""
    _on_agents(lambda agents: agents.revoke(name))
    typer.echo(f"{name} is revoked.")


@app.command("list")
def list_agents(as_json: AsJson = False) -> None:
    """List the agents, and when they were last heard of."""
    from ade.http.schemas.agents import agent_body

    found = _on_agents(lambda agents: agents.list_with_hosts())
    bodies = [agent_body(*both) for both in found]
    if as_json:
        typer.echo(json.dumps({"agents": bodies}, indent=2))
        return
    if not bodies:
        typer.echo("No agent is enrolled. `ade agents enrol NAME` enrols one.")
    for one in bodies:
        seen = one["last_seen_at"] or "never"
        labels = ",".join(one["labels"]) or "-"
        typer.echo(f"{one['name']}  {one['status']}  last seen {seen}  labels {labels}")


def _on_agents(call: "Callable[[Agents], Any]") -> Any:
    """Call the agents of the database, or exit with what is wrong in one line."""
    import asyncio

    from ade.domain.errors import AdeError, NotFound
    from ade.process.links import open_database

    settings = settings_or_exit()
    try:
        with open_database(settings) as directory:
            return asyncio.run(call(directory.agents()))
    except AdeError as refused:
        typer.echo(f"ade: {refused.detail}", err=True)
        if isinstance(refused, NotFound):
            raise typer.Exit(ExitCode.NOT_FOUND) from None
        wrong = refused.status < 500
        raise typer.Exit(ExitCode.USAGE if wrong else ExitCode.UNAVAILABLE) from None


def _print_made(made: "NewAgentKey", code_minutes: int, *, as_json: bool) -> None:
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "agent_id": made.agent.id,
                    "name": made.agent.name,
                    "key": made.key,
                    "enrolment_code": made.code,
                },
                indent=2,
            )
        )
        return
    typer.echo(made.code)
    typer.echo(
        f"The agent {made.agent.name} trades this code for its key, once, within {code_minutes}"
        " minutes. `--json` prints a key that works without that.",
        err=True,
    )

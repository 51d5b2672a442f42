"""The command line: one module per command, each importing what is heavy inside its function."""

from typing import Annotated

import typer

from ade import __version__
from ade.cli import (
    agent,
    agents,
    config,
    db,
    demo,
    doctor,
    inspect,
    link,
    run,
    scale,
    serve,
    settings,
    worker,
)

app = typer.Typer(
    name="ade",
    help="A Durable Executor: every accepted job reaches exactly one end.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # its listing of locals would print secrets
)
app.command("serve")(serve.serve)
app.command("worker")(worker.worker)
app.command("agent")(agent.agent)
app.command("link")(link.link)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.command("settings")(settings.print_settings)
app.command("inspect")(inspect.inspect)
app.command("run")(run.run_file)
app.add_typer(agents.app, name="agents")
app.add_typer(config.app, name="config")
app.add_typer(db.app, name="db")
app.add_typer(scale.app, name="scale")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ade {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    app()

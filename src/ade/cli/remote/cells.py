"""``ade cells``: run pieces of Python in the sandbox of the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ade.cli.remote.connect import connected, failed
from ade.cli.remote.inputs import named_values, text_of
from ade.cli.remote.show import show
from ade.cli.remote.watch import bars

if TYPE_CHECKING:
    from ade.client.sync.cells import CellResult

app = typer.Typer(help="Run pieces of Python in the sandbox of the server.", no_args_is_help=True)


@app.callback()
def cells() -> None:
    """Run pieces of Python in the sandbox of the server."""


@app.command("run")
def run(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A file of Python; - is stdin.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--code", "-c", metavar="PYTHON", help="Instead of a file.")
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="NAME=VALUE", help="JSON or a text; several times."),
    ] = None,
    requirements: Annotated[
        list[str] | None, typer.Option("--require", "-r", help="A package; several times.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Stop waiting; the cell goes on.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Save the files that it leaves here.")
    ] = None,
) -> None:
    """Run a cell and print what it printed, then its value.

    Parameters are variables of the cell, and arguments of its `main` if it has one.
    """
    if (file is None) == (source is None):
        raise typer.BadParameter("give a file or --code", param_hint="FILE")
    given = named_values(parameters or (), "--param")
    with connected(patient=True) as client:
        code = text_of(file) if file is not None else source
        options = client.cells.options(timeout_seconds=timeout, requirements=requirements or ())
        result = _run(options, code or "", given)
        show(result.envelope.raw, lambda: _draw(result))
        if out is not None and result.artifacts:
            out.mkdir(parents=True, exist_ok=True)
            for one in result.artifacts:
                typer.echo(one.download(out), err=True)


def _run(cells: Any, code: str, given: dict[str, Any]) -> CellResult:
    from ade.client.errors import JobEndedBadly

    try:
        with bars() as progress:
            if progress is not None:
                progress.add_task("running", total=None)
            found: CellResult = cells.run(code, **given)
            return found
    except JobEndedBadly as ended:
        typer.echo(ended.stdout, nl=False)
        raise failed(str(ended)) from None


def _draw(result: CellResult) -> None:
    typer.echo(result.stdout, nl=False)
    typer.echo(result.stderr, nl=False, err=True)
    if result.value is not None:
        typer.echo(json.dumps(result.value, indent=2, ensure_ascii=False))
    for one in result.artifacts:
        typer.echo(f"file {one.name} ({one.id})", err=True)

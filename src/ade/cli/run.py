"""``ade run``: normalise one file here and now, and explain what was done with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ade.cli.exit_codes import ExitCode
from ade.cli.run_summary import explain

if TYPE_CHECKING:
    from ade_engine.errors import EngineError


def run_file(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A spreadsheet.")
    ],
    config: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="The folder of the config package.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Where the output goes; FILE's name with .normalized.")
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--format", help="xlsx, csv, parquet or jsonl, several times; else as the package says."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 when errors were found in the data.")
    ] = False,
    traceback: Annotated[
        bool,
        typer.Option(
            "--traceback", help="Show where the package's code failed; it may show cell values."
        ),
    ] = False,
) -> None:
    """Normalise a file with a config package, without a server and without a sandbox."""
    from ade_engine.entry.normalize import ARTIFACT_FILE, NormalizeRequest, normalize
    from ade_engine.errors import EngineError
    from ade_engine.package.package_settings import OUTPUT_FORMATS
    from ade_engine.pipeline.write_output import OutputOptions

    unknown = set(outputs or ()) - set(OUTPUT_FORMATS)
    if unknown:
        known = ", ".join(OUTPUT_FORMATS)
        raise typer.BadParameter(f"{min(unknown)!r} is not one of {known}", param_hint="--format")
    options = OutputOptions(tuple(dict.fromkeys(outputs or ())))
    folder = out if out is not None else Path(f"{file.stem}.normalized")
    try:
        # What the package prints is not part of the answer.
        with _progress() as on_progress, redirect_stdout(sys.stderr):
            summary = normalize(
                NormalizeRequest(file, config, folder, options=options), on_progress
            )
    except EngineError as failed:
        _say_failure(failed, folder, as_json=as_json, with_traceback=traceback)
        raise typer.Exit(ExitCode.JOB_FAILED) from None
    artifact = json.loads((folder / ARTIFACT_FILE).read_text(encoding="utf-8"))
    if as_json:
        typer.echo(json.dumps({**summary, "folder": str(folder)}, indent=2))
    else:
        _explain(artifact, summary, folder)
    if not _is_accepted(summary, strict=strict):
        raise typer.Exit(ExitCode.JOB_FAILED)


def _is_accepted(summary: dict[str, Any], *, strict: bool) -> bool:
    """Say on stderr what is wrong with the result; tell whether it is good enough."""
    from ade.domain.evaluation import Evaluation, FailOn, shortcoming, strictest

    evaluation, counts = Evaluation(summary["evaluation"]), summary["summary"]
    issues = {"error": counts["errors"], "warning": counts["warnings"]}
    unused_tables = counts["skipped"]["tables"]
    found = shortcoming(FailOn.ERRORS, evaluation, issues, unused_tables)
    by_package = FailOn(summary["fail_on"])
    fail_on = strictest(by_package, FailOn.ERRORS) if strict else by_package
    failed = shortcoming(fail_on, evaluation, issues, unused_tables)
    if failed is not None or evaluation is not Evaluation.COMPLETE:
        typer.secho(f"ade: failed: {failed or found}", fg="red", err=True)
        return False
    if found is not None:
        text = f"ade: {found} in the data; with --strict this is a failure"
        typer.secho(text, fg="yellow", err=True)
    return True


@contextmanager
def _progress() -> Iterator[Callable[[int, int, str], None] | None]:
    """Show a bar on a terminal, on stderr, and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("reading", total=None)

        def on_progress(done: int, total: int, message: str) -> None:
            bars.update(bar, description=message, completed=done, total=total or None)

        yield on_progress


def _say_failure(failed: EngineError, folder: Path, *, as_json: bool, with_traceback: bool) -> None:
    from ade_engine.entry.normalize import error_json

    raised = getattr(failed, "raised", None)
    if with_traceback and raised is not None:
        import traceback

        traceback.print_exception(raised)
    if as_json:
        shown = {"status": "failed", "error": error_json(failed), "folder": str(folder)}
        typer.echo(json.dumps(shown, indent=2))
        return
    for problem in getattr(failed, "problems", ()):
        typer.echo(f"error: {problem}", err=True)
    typer.echo(f"ade: {failed.code}: {failed}", err=True)


def _explain(artifact: dict[str, Any], summary: dict[str, Any], folder: Path) -> None:
    explain(artifact)
    if summary["missing"]:
        typer.echo(f"missing: {', '.join(summary['missing'])}", err=True)
    for name in summary["files"]:
        typer.echo(f"  {folder / name}")

"""``ade config`` in a folder: start a config package, check it, run its tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ade.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from ade_engine.package import Package, PackageProblem

DEFAULT_EXAMPLE = "member_roster"
PYTEST_FOUND_NONE = 5
PYTEST_FAILED = (1, PYTEST_FOUND_NONE)


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    example: Annotated[
        str, typer.Option(help="Which example to copy: member_roster, payroll or bank_statement.")
    ] = DEFAULT_EXAMPLE,
) -> None:
    """Start a config package from an example, with its tests and a sample."""
    import shutil

    from ade_engine.examples import FOLDER, example_names

    name = example.replace("-", "_")
    if name not in example_names():
        known = ", ".join(example_names())
        raise typer.BadParameter(f"there is no example {example!r}; there are: {known}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise typer.BadParameter(f"{folder} exists already and is not empty")
    skipped = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(FOLDER / name, folder, ignore=skipped, dirs_exist_ok=True)
    sample = next(iter(sorted((folder / "samples").iterdir())))
    typer.echo(f"Made {folder} from the example {name}. Try it:")
    typer.echo(f"  ade config check {folder}")
    typer.echo(f"  ade run {sample} --config {folder}")
    typer.echo(f"  ade config test {folder}")


def run_tests(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="The package.")
    ] = Path(),
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGS]", help="Passed on to pytest.")
    ] = None,
) -> None:
    """Run the tests of a package with pytest."""
    import importlib.util
    import subprocess
    import sys

    if importlib.util.find_spec("pytest") is None:
        typer.echo("ade: pytest is not installed here: pip install pytest", err=True)
        raise typer.Exit(ExitCode.USAGE)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", str(folder), *(words or ())], check=False
    )
    if ended.returncode == PYTEST_FOUND_NONE:
        typer.echo(f"ade: {folder} has no tests", err=True)
    code = ExitCode.JOB_FAILED if ended.returncode in PYTEST_FAILED else ExitCode.USAGE
    raise typer.Exit(code if ended.returncode else ExitCode.OK)


def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The config package.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Load a package, check its functions and settings, and list its fields and rules."""
    from ade_engine.package import PackageInvalid, load_package

    try:
        with load_package(folder) as package:
            problems = list(package.warnings)
            described = _described(package)
    except PackageInvalid as invalid:
        problems, described = list(invalid.problems), None
    if as_json:
        shown = {
            "valid": described is not None,
            "problems": [problem.as_json() for problem in problems],
            **(described or {}),
        }
        typer.echo(json.dumps(shown, indent=2))
    else:
        _print(described, problems)
    if described is None:
        raise typer.Exit(ExitCode.JOB_FAILED)


def _described(package: Package) -> dict[str, Any]:
    return {
        "name": package.settings.name,
        "digest": package.sources.digest,
        "fields": [
            {
                "field": rules.name,
                "label": rules.label,
                "type": str(rules.field.type),
                "required": rules.field.required,
                "rules": [
                    f"col.{rules.name}.synonym",
                    *(str(detector.rule) for detector in rules.detectors),
                ],
                "functions": list(rules.functions),
            }
            for rules in package.fields
        ],
        "row_types": [str(one.function.rule) for one in package.row_detectors],
        "hooks": {event: len(hooks) for event, hooks in package.hooks.items()},
    }


def _print(described: dict[str, Any] | None, problems: list[PackageProblem]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if described is not None:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("field", "label", "type", "required", "rules", "functions"):
            table.add_column(column, overflow="fold")
        for one in described["fields"]:
            required = "yes" if one["required"] else ""
            cells = (one["field"], one["label"], one["type"], required)
            lists = ("\n".join(one["rules"]), "\n".join(one["functions"]))
            table.add_row(*map(Text, cells + lists))
        console.print(table)
        for kind, names in (("row types", described["row_types"]), ("hooks", described["hooks"])):
            if names:
                console.print(Text(f"{kind}: {', '.join(names)}"))
    for problem in problems:
        typer.echo(f"{problem.severity}: {problem}", err=True)
    if described is None:
        typer.echo("ade: the package cannot be used as it is", err=True)
    else:
        typer.echo(f"{described['name']}: ok, {len(described['fields'])} fields")

"""Check a config package: load it and report everything that is wrong with it.

No function of the package is called, but loading runs the top level of its modules, so this must
run in the sandbox, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ade_engine.channel import Channel
from ade_engine.package.author_errors import PackageInvalid
from ade_engine.package.config_package import load_package

PROBLEMS_MAX = 500


def main(inputs: dict[str, Any], channel: Channel) -> Any:
    """Check the package in the folder `config`."""
    folder = Path(inputs["config"])
    folder.mkdir(exist_ok=True)  # a package without any file is reported as a problem
    try:
        with load_package(folder) as package:
            problems = list(package.warnings)
            fields = [{"field": one.name, "label": one.label} for one in package.fields]
    except PackageInvalid as invalid:
        problems, fields = list(invalid.problems), []
    return {
        "valid": not any(problem.severity == "error" for problem in problems),
        "problems": [problem.as_json() for problem in problems[:PROBLEMS_MAX]],
        "fields": fields,
    }

"""Run modules of CPython's own tests as cells and as plain Python, and say what differs and why.

A long run, not a test of any tier: `scripts/cpython-cells [--modules a,b] [--json FILE]`. Both runs
take the same source (`cell.py` beside this file) and the same interpreter. Tests whose outcome
differs are run once more, so that one that is only unsteady is told apart. `modules.toml` has the
modules and the reasons; a difference without a reason makes the run exit with 1.
"""

# ruff: noqa: T201 - it is a command
import argparse
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.cpython.runs import (
    DATA,
    DEBIAN_FOLDER,
    SETTINGS,
    ModuleRun,
    interpreter_lacks,
    run_cell,
    run_plain,
)
from tests.system.server import Server, starting

UNSTEADY, UNEXPLAINED = "differs from run to run", "unexplained"
# Stands for a whole class or module in a list of outcomes: `setUpClass (test.test_x.Some)`.
OF_MANY = re.compile(r"(?:setUp|tearDown)(?:Class|Module) \((.+)\)|unittest\.loader\.\w+\.(.+)")


@dataclass(frozen=True)
class Difference:
    """Say how one test ended under plain Python and as a cell."""

    module: str
    test: str
    plain: str
    cell: str
    message: str
    reason: str = UNEXPLAINED


def differences(module: str, plain: ModuleRun, cell: ModuleRun) -> list[Difference]:
    """Compare two runs of a module test by test."""
    found = []
    for test in sorted(plain.tests.keys() | cell.tests.keys()):
        if OF_MANY.fullmatch(test):
            continue
        (was, said), (became, message) = _outcome(plain, test), _outcome(cell, test)
        if was != became:
            found.append(Difference(module, test, was, became, message or said))
    if plain.ending or (cell.ending and not found):
        found.append(Difference(module, "(the module)", plain.ending, cell.ending, cell.ending))
    return found


def _outcome(run: ModuleRun, test: str) -> list[str]:
    """Return the outcome of a test, or what kept its class or module from running."""
    if test in run.tests:
        return run.tests[test]
    for name, (outcome, message) in run.tests.items():
        whole = OF_MANY.fullmatch(name)
        if whole and test.startswith(f"{whole[1] or whole[2]}."):
            return [outcome, message]
    return ["not run", run.ending]


def explained(difference: Difference) -> Difference:
    """Add the first reason of the data whose pattern fits."""
    text = f"{difference.test} {difference.plain}->{difference.cell} {difference.message}"
    for reason in DATA.get("reason", []):
        if re.search(reason["pattern"], text):
            return Difference(**asdict(difference) | {"reason": reason["name"]})
    return difference


def compare(server: Server, module: str) -> dict[str, Any]:
    """Run a module in both ways, twice if they differ; return the counts and the differences."""
    plain, cell = _both(server, module)
    found = differences(module, plain, cell)
    if found:
        only = [one.test for one in found]
        again = {one.test for one in differences(module, *_both(server, module, only))}
        found = [
            explained(one)
            if one.test in again
            else Difference(**asdict(one) | {"reason": UNSTEADY})
            for one in found
        ]
    return {
        "module": module,
        "plain": dict(Counter(outcome for outcome, _ in plain.tests.values())),
        "cell": dict(Counter(outcome for outcome, _ in cell.tests.values())),
        "differences": [asdict(one) for one in found],
    }


def _both(server: Server, module: str, only: Sequence[str] = ()) -> tuple[ModuleRun, ModuleRun]:
    with ThreadPoolExecutor(1) as pool:
        plain = pool.submit(run_plain, module, only)
        cell = run_cell(server, module, only)
        return plain.result(), cell


def _row(report: dict[str, Any]) -> str:
    def counts(side: str) -> str:
        found = report[side]
        bad = sum(found.values()) - found.get("passed", 0) - found.get("skipped", 0)
        return f"{found.get('passed', 0):6} {bad:6} {found.get('skipped', 0):7}"

    return (
        f"{report['module']:28} {counts('plain')} {counts('cell')} {len(report['differences']):6}"
    )


def _summary(reports: list[dict[str, Any]]) -> str:
    """List the differences by reason."""
    found = [Difference(**one) for report in reports for one in report["differences"]]
    same = sum(not report["differences"] for report in reports)
    tests = sum(sum(report["plain"].values()) for report in reports)
    lines = [
        "",
        f"{len(reports)} modules, {tests} tests, {len(found)} end in another way as cells;"
        f" {same} modules are the same.",
    ]
    for reason, count in Counter(one.reason for one in found).most_common():
        lines += ["", f"{reason} ({count})"]
        lines += [
            f"  {one.test}: {one.plain} -> {one.cell}; {one.message}"
            for one in found
            if one.reason == reason
        ]
    return "\n".join(lines)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/cpython-cells", description=__doc__)
    parser.add_argument("--modules", help="only these, with commas between them")
    parser.add_argument("--json", type=Path, help="write the reports to this file")
    return parser.parse_args()


def main() -> int:
    """Compare the modules, and print a table and the differences by reason."""
    asked = _asked()
    modules = asked.modules.split(",") if asked.modules else DATA["modules"]
    missing = [name for name in modules if interpreter_lacks(name) and not _in_debian(name)]
    if missing:
        print(
            f"CPython's tests lack {', '.join(missing)}; install libpython3.11-testsuite (Debian).",
            file=sys.stderr,
        )
        return 2
    print(f"{'':28} {'plain Python':^21} {'cell':^21}")
    print(f"{'module':28}" + " passed failed skipped" * 2 + " differ")
    reports = []
    with tempfile.TemporaryDirectory() as folder, starting(Path(folder), **SETTINGS) as start:
        os.chmod(folder, 0o711)  # so that the users of jobs may pass
        server = start.server()
        for module in modules:
            reports.append(compare(server, module))
            print(_row(reports[-1]), flush=True)
            if asked.json:
                asked.json.write_text(json.dumps(reports, indent=1) + "\n")
    print(_summary(reports))
    return any(one["reason"] == UNEXPLAINED for r in reports for one in r["differences"])


def _in_debian(module: str) -> bool:
    path = DEBIAN_FOLDER.joinpath(*module.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


if __name__ == "__main__":
    sys.exit(main())

"""Activation loads a package, calls its hooks and keeps their results."""

import io
from pathlib import Path

import pytest
from tests.unit.engine.package.packages import FIELD, write_package

from ade_engine.channel import Channel
from ade_engine.entry.activate import main
from ade_engine.package import AuthorError


def test_what_hooks_note_is_kept_as_far_as_it_is_json(tmp_path: Path) -> None:
    write_package(
        tmp_path,
        columns__a=FIELD,
        config="[author]\nmodel = 'small'\n",
        hooks__on_activate__a="def run(ctx): return {'model': ctx.settings['model']}",
        hooks__on_activate__b="def run(): return object()",
        hooks__on_activate__c="def run(): pass",
        hooks__on_activate__d="def run(): return 'x' * 100_000",
    )
    report = main({"config": str(tmp_path)}, Channel(io.StringIO()))
    assert report["annotations"] == [
        {"model": "small"},
        {"dropped": "it is not JSON"},
        {"dropped": "it is too large"},
    ]
    assert report["fields"] == ["a"]


def test_a_hook_that_fails_is_reported_with_its_location(tmp_path: Path) -> None:
    write_package(tmp_path, columns__a=FIELD, hooks__on_activate="def run(ctx):\n    1 / 0\n")
    with pytest.raises(AuthorError) as failed:
        main({"config": str(tmp_path)}, Channel(io.StringIO()))
    assert str(failed.value.failure.location) == "hooks/on_activate.py:2"
    assert failed.value.failure.rule == "hook.on_activate"


@pytest.mark.parametrize("body", ["int('x')", "len(1)", "{}['x']", "1 / 0"])
def test_what_helps_a_hook_speaks_of_no_file(tmp_path: Path, body: str) -> None:
    """No table was read, and `ade run` does not call it."""
    write_package(tmp_path, columns__a=FIELD, hooks__on_activate=f"def run(ctx):\n    {body}\n")
    with pytest.raises(AuthorError) as failed:
        main({"config": str(tmp_path)}, Channel(io.StringIO()))
    report = str(failed.value)
    for word in ("column", "row", "table", "ade run"):
        assert word not in report, report
    assert report.endswith("Correct the function, and activate the version again.")

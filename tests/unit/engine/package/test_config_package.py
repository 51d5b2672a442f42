"""A package is found by convention, loaded in isolation, and its problems are located."""

import random
import sys
from pathlib import Path

import pytest
from tests.unit.engine.package.packages import FIELD, write_package

import ade_engine
from ade_engine.package import AuthorError, Package, PackageInvalid, load_package
from ade_engine.package.author_errors import DEPENDENCY_ERROR, PackageProblem
from ade_engine.package.function_arguments import Context


def problems(folder: Path) -> list[PackageProblem]:
    with pytest.raises(PackageInvalid) as refused:
        load_package(folder)
    return list(refused.value.problems)


def only_problem(folder: Path) -> PackageProblem:
    found = problems(folder)
    assert len(found) == 1, found
    return found[0]


def test_the_issues_example_loads_as_it_stands(tmp_path: Path) -> None:
    text = """
FIELD = Field(label="Member ID", required=True, type="text", order=10, synonyms=["employee id"])

def detect_pattern(column):
    return 0.9 * column.share_matching(r"[A-Z]{2}\\d{6}")

def transform(value):
    return value.strip().upper()

def validate_column(column):
    return column.issues_where(~column.matches(r"[A-Z]{2}\\d{6}"), code="invalid_format")
"""
    with load_package(write_package(tmp_path, columns__member_id=text)) as package:
        (rules,) = package.fields
        assert (rules.name, rules.label, rules.field.required) == ("member_id", "Member ID", True)
        assert [detector.rule for detector in rules.detectors] == ["col.member_id.pattern"]
        assert set(rules.functions) == {"transform", "validate_column"}


def test_fields_stand_in_their_order_then_by_name(tmp_path: Path) -> None:
    write_package(
        tmp_path,
        columns__b="FIELD = Field(order=1)",
        columns__c="FIELD = Field()",
        columns__a="FIELD = Field()",
        columns___shared="this is not even Python, and nobody imports it",
    )
    with load_package(tmp_path) as package:
        assert [rules.name for rules in package.fields] == ["b", "a", "c"]
        assert [rules.label for rules in package.fields] == ["B", "A", "C"]


def test_an_unknown_parameter_is_an_error_with_file_and_line(tmp_path: Path) -> None:
    write_package(tmp_path, columns__a=FIELD + "\n\ndef transform(valeu):\n    return valeu\n")
    problem = only_problem(tmp_path)
    assert problem.code == "unknown_parameter"
    assert str(problem.location) == "columns/a.py:4"
    assert "Did you mean value?" in problem.hint


def test_parameters_with_defaults_of_their_own_are_the_authors(tmp_path: Path) -> None:
    write_package(tmp_path, columns__a=FIELD + "def transform(value, known={}): return value")
    with load_package(tmp_path) as package:
        assert package.fields[0].functions["transform"].parameters == ("value",)


def test_every_problem_is_listed_at_once(tmp_path: Path) -> None:
    write_package(
        tmp_path,
        columns__a="FIELD = Field(tpye='text')",
        columns__b="def transform(value): return value",
        columns__c="FIELD = Field(\n",
        columns__d="FIELD = Field(type='txet')",
        columns__e=FIELD + "async def transform(value): pass",
        columns__f=FIELD + "def transform(value): pass\ndef transform_column(column): pass",
        hooks__on_jobstart="def on_jobstart(ctx): pass",
        hooks__on_job_end="def ended(ctx): pass",
        config="[mapping]\nthreshold = 'high'\nmragin = 1\n[ouptut]\n",
    )
    found = {(problem.code, str(problem.location)) for problem in problems(tmp_path)}
    assert found == {
        ("unknown_parameter", "columns/a.py:1"),
        ("no_field", "columns/b.py:1"),
        ("syntax_error", "columns/c.py:1"),
        ("load_failed", "columns/d.py:1"),
        ("async_function", "columns/e.py:2"),
        ("two_transforms", "columns/f.py"),
        ("unknown_hook", "hooks/on_jobstart.py"),
        ("no_hook", "hooks/on_job_end.py:1"),
        ("setting_not_allowed", "config.toml:2"),
        ("unknown_setting", "config.toml:3"),
        ("unknown_setting", "config.toml:4"),
    }


def test_a_type_that_does_not_exist_is_answered_with_the_nearest(tmp_path: Path) -> None:
    write_package(tmp_path, columns__a="FIELD = Field(type='numbr')")
    assert "did you mean 'number'?" in only_problem(tmp_path).hint


@pytest.mark.parametrize(
    ("function", "hint"),
    [("def transfrom(value): pass", "transform"), ("def detect(column): pass", "detect_<rule>")],
)
def test_typos_are_warned_about(tmp_path: Path, function: str, hint: str) -> None:
    write_package(tmp_path, columns__a=FIELD + function)
    with load_package(tmp_path) as package:
        (warning,) = package.warnings
        assert (warning.code, warning.severity) == ("unused_function", "warning")
        assert hint in warning.hint


def test_a_message_that_is_made_at_run_time_is_warned_of(tmp_path: Path) -> None:
    text = FIELD + "def validate(value):\n    return Issue('bad', 'error', f'bad: {value}')"
    with load_package(write_package(tmp_path, columns__a=text)) as package:
        (warning,) = package.warnings
        assert (warning.code, str(warning.location)) == ("message_not_literal", "columns/a.py:3")


def test_a_missing_module_is_named(tmp_path: Path) -> None:
    write_package(tmp_path, columns__a="import no_such_module_here\n" + FIELD)
    with pytest.raises(PackageInvalid, match="no_such_module_here") as refused:
        load_package(tmp_path)
    assert refused.value.category == DEPENDENCY_ERROR
    assert refused.value.problems[0].code == "dependency_missing"


def test_an_absolute_import_of_an_own_file_is_answered_with_the_relative_one(
    tmp_path: Path,
) -> None:
    write_package(tmp_path, shared="x = 1", columns__a="from shared import x\n" + FIELD)
    assert "from ..shared import" in only_problem(tmp_path).hint


def test_files_import_each_other_relatively_in_any_order(tmp_path: Path) -> None:
    write_package(
        tmp_path,
        shared__words="LABEL = 'From elsewhere'",
        columns__a="from .z import X\nfrom ..shared.words import LABEL\nFIELD = Field(label=LABEL)",
        columns__z="X = 1\nFIELD = Field()",
    )
    with load_package(tmp_path) as package:
        assert package.fields[0].label == "From elsewhere"


def test_a_file_that_is_named_as_a_module_of_the_runtime_shadows_nothing(tmp_path: Path) -> None:
    write_package(
        tmp_path,
        random="raise RuntimeError",
        polars="raise RuntimeError",
        ade_engine="raise RuntimeError",
        columns__json=FIELD,
        columns__a="import json, random\nX = json.dumps(random.Random(1).random())\n" + FIELD,
    )
    path = list(sys.path)
    with load_package(tmp_path) as package:
        assert len(package.fields) == 2
        assert sys.modules["random"] is random
        assert sys.modules["ade_engine"] is ade_engine
        assert sys.path == path


def test_vendored_modules_are_imported_by_their_own_names(tmp_path: Path) -> None:
    folder = write_package(
        tmp_path,
        columns__a=FIELD + "import tidying\nfrom tidying.deep import WORD\n",
        vendor__tidying__deep="WORD = 'vendored'\n",
    )
    with load_package(folder) as package:
        assert [rules.name for rules in package.fields] == ["a"]
        assert sys.modules["tidying.deep"].WORD == "vendored"
    assert not [name for name in sys.modules if name.startswith("tidying")]
    assert str(folder / "vendor") not in sys.path


def test_a_vendored_module_shadows_nothing(tmp_path: Path) -> None:
    folder = write_package(
        tmp_path,
        columns__a=FIELD + "import numpy, json\nassert numpy.array and json.dumps\n",
        vendor__numpy="raise RuntimeError('shadowed')\n",
        vendor__json="raise RuntimeError('shadowed')\n",
    )
    with load_package(folder) as package:
        assert package.warnings == ()


def test_vendored_modules_count_in_the_digest_and_not_as_the_authors_words(tmp_path: Path) -> None:
    folder = write_package(tmp_path, columns__a=FIELD, vendor__tidying="WORD = 'vendored'\n")
    with load_package(folder) as package:
        before = package.sources.digest
        assert "vendored" not in package.sources.texts
    write_package(tmp_path, vendor__tidying="WORD = 'changed'\n")
    with load_package(folder) as package:
        assert package.sources.digest != before


def test_two_packages_with_the_same_names_do_not_meet(tmp_path: Path) -> None:
    first = write_package(tmp_path / "1", columns__a="FIELD = Field(label='One')")
    second = write_package(tmp_path / "2", columns__a="FIELD = Field(label='Two')")
    with load_package(first) as one, load_package(second) as two:
        assert (one.fields[0].label, two.fields[0].label) == ("One", "Two")


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    finders = list(sys.meta_path)
    with load_package(write_package(tmp_path, columns__a=FIELD)):
        pass
    write_package(tmp_path, columns__b="oh no")
    problems(tmp_path)
    assert sys.meta_path == finders
    assert not [name for name in sys.modules if name.startswith("ade_config_")]
    assert not list(tmp_path.rglob("__pycache__"))


def test_a_hook_may_be_a_file_or_a_folder_of_files(tmp_path: Path) -> None:
    write_package(
        tmp_path,
        columns__a=FIELD,
        hooks__on_activate__b="def run(ctx): return 'second'",
        hooks__on_activate__a="def on_activate(): return 'first'",
    )
    with load_package(tmp_path) as package:
        hooked = package.call_hooks("on_activate", {"ctx": Context()})
        assert hooked == ["first", "second"]


def test_settings_have_defaults_and_the_author_has_a_part_of_them(tmp_path: Path) -> None:
    config = "name = 'Mine'\n[output]\nunmapped = 'keep'\n[author]\nregion = 'north'\n"
    with load_package(write_package(tmp_path, columns__a=FIELD, config=config)) as package:
        assert package.settings.name == "Mine"
        assert package.settings.output.unmapped == "keep"
        assert package.settings.mapping.threshold == 0.5
        assert package.settings.author == {"region": "north"}


def test_the_digest_is_of_names_and_contents(tmp_path: Path) -> None:
    def digest(name: str, **files: str) -> str:
        with load_package(write_package(tmp_path / name, **files)) as package:
            return package.sources.digest

    assert digest("1", columns__a=FIELD) == digest("2", columns__a=FIELD)
    assert digest("1", columns__a=FIELD) != digest("3", columns__b=FIELD)
    assert digest("1", columns__a=FIELD) != digest("4", columns__a=FIELD + "#")


def failure(package: Package) -> AuthorError:
    with pytest.raises(AuthorError) as failed:
        package.fields[0].functions["transform"]({"value": "CANARY"})
    return failed.value


@pytest.mark.parametrize(
    ("body", "exception"),
    [
        ("raise ValueError(value)", "ValueError"),
        ("raise type(value, (KeyError,), {})(value)", "KeyError"),
        ("raise SystemExit(value)", "SystemExit"),
        ("import sys; sys.exit(value)", "SystemExit"),
        ("raise __import__('importlib').import_module(value)", "ModuleNotFoundError"),
        ("raise ModuleNotFoundError(name=value)", "ModuleNotFoundError"),
        ("raise NameError(name=value)", "NameError"),
        ("getattr(1, value)", "AttributeError"),
        ("Issue(value.lower(), value)", "Misuse"),
        ("{}[value]", "KeyError"),
        ("assert not value, value", "AssertionError"),
        ("raise ExceptionGroup(value, [ValueError(value)])", "ExceptionGroup"),
    ],
)
def test_what_is_said_of_an_exception_never_holds_a_value(
    tmp_path: Path, body: str, exception: str
) -> None:
    text = FIELD + f"\n\ndef transform(value):\n    {body}\n"
    with load_package(write_package(tmp_path, columns__a=text)) as package:
        failed = failure(package)
        assert "CANARY".casefold() not in f"{failed} {failed.details()}".casefold()
        assert failed.details()["exception"] == exception
        assert str(failed.failure.location) == "columns/a.py:5"
        assert failed.failure.source == body.strip()
        assert failed.__context__ is None


def test_names_that_the_source_uses_may_be_shown(tmp_path: Path) -> None:
    text = FIELD + "def transform(value): return undefinde(value)"
    with load_package(write_package(tmp_path, columns__a=text)) as package:
        assert failure(package).failure.hint == "`undefinde` is not defined there."


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        (
            {"columns__a": FIELD + "\ndef validate(value): raise ValueError\n"},
            "The column may hold numbers, dates, or texts of another form.",
        ),
        (
            {"columns__a": FIELD + "\ndef validate_table(table): {}['b']\n"},
            "`row` and `table` hold only the fields that were mapped; use .get().",
        ),
        (
            {"row_types__note": "def detect_note(row): raise TypeError\n"},
            "The sheet may have rows with other cells than expected.",
        ),
        ({"row_types__note": "def detect_note(ctx): raise TypeError\n"}, ""),
        ({"hooks__on_job_end": "def on_job_end(summary): {}['b']\n"}, ""),
    ],
)
def test_what_helps_fits_what_the_function_was_given(
    tmp_path: Path, files: dict[str, str], hint: str
) -> None:
    with load_package(write_package(tmp_path, **{"columns__a": FIELD} | files)) as package:
        given = dict.fromkeys(("value", "row", "table", "summary", "ctx"))
        functions = [
            *(function for rules in package.fields for function in rules.functions.values()),
            *(detector.function for detector in package.row_detectors),
            *(hook for hooks in package.hooks.values() for hook in hooks),
        ]
        (function,) = functions
        with pytest.raises(AuthorError) as failed:
            function(given)
        assert failed.value.failure.hint == hint

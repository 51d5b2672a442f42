"""The engine's pages say what its code does.

Parts between `<!-- generated: NAME -->` and `<!-- end -->` are written from the code by
`.venv/bin/python -m tests.unit.test_engine_docs`.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from tests.generated import check, table, write

import ade_engine
import ade_engine.entry.normalize  # its errors belong to the tree
from ade_engine.errors import EngineError
from ade_engine.mapping.column_mapping import Reason
from ade_engine.package import Column, Field, load_package
from ade_engine.package.author_errors import PROBLEMS
from ade_engine.package.column_core import ColumnCore
from ade_engine.package.functions import COLUMN_FUNCTIONS, DETECT_COLUMN, DETECT_ROW, HOOKS
from ade_engine.package.package_settings import SECTIONS
from ade_engine.record.run_events import MEANINGS

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PACKAGES = REFERENCE / "config-package.md"
ARTIFACT = REFERENCE / "artifact.md"
HOW_TO = REFERENCE.parent / "how-to" / "write-a-config-package.md"
MAPPING = REFERENCE.parent / "explanation" / "mapping.md"

assert ade_engine.entry.normalize


def functions() -> str:
    known = {
        "`detect_<rule>` in `columns/`": DETECT_COLUMN,
        **{f"`{name}`": names for name, names in COLUMN_FUNCTIONS.items()},
        "`detect_<rule>` in `row_types/`": DETECT_ROW,
        **{f"`{name}`": names for name, names in HOOKS.items()},
    }
    rows = ((name, ", ".join(f"`{one}`" for one in names)) for name, names in known.items())
    return table("| function | may declare |", rows)


def column() -> str:
    return table("| | |", chain(_methods(Column), _methods(ColumnCore)))


def _methods(kind: type) -> Iterator[tuple[str, str]]:
    for name, held in vars(kind).items():
        if name.startswith("_") or not (inspect.isfunction(held) or isinstance(held, property)):
            continue
        said = (held.__doc__ or "").split("\n")[0]
        if inspect.isfunction(held):
            parameters = list(inspect.signature(held).parameters.values())[1:]
            shown = ", ".join(one.name for one in parameters)
            yield f"`{name}({shown})`", said
        else:
            yield f"`{name}`", said


def config_toml() -> str:
    return table("| setting | default | what it does |", _settings())


def _settings() -> Iterator[tuple[str, str, str]]:
    for section, kind in SECTIONS.items():
        for one in fields(kind):
            default: Any = list(one.default) if isinstance(one.default, tuple) else one.default
            shown = str(default).lower() if isinstance(default, bool) else repr(default)
            yield f"`[{section}] {one.name}`", f"`{shown}`", _sentence(one.metadata["says"])


def problems_of_packages() -> str:
    return table("| code | means |", ((f"`{code}`", said) for code, said in PROBLEMS.items()))


def engine_events() -> str:
    rows = ((f"`{name.value}`", said) for name, said in MEANINGS.items())
    return table("| event | data |", rows)


def engine_errors() -> str:
    for module in pkgutil.walk_packages(ade_engine.__path__, "ade_engine."):
        if ".examples." not in module.name:
            importlib.import_module(module.name)  # an error is known once its module is
    found = {kind.code: kind for kind in _tree(EngineError) if kind is not EngineError}
    rows = ((f"`{code}`", _title(kind), kind.advice) for code, kind in sorted(found.items()))
    return table("| code | means | what to do |", rows)


def _tree(kind: type[EngineError]) -> Iterator[type[EngineError]]:
    yield kind
    for below in kind.__subclasses__():
        if below.__module__.startswith("ade_engine."):
            yield from _tree(below)


def _title(kind: type[EngineError]) -> str:
    return (kind.__doc__ or "").strip().split("\n")[0]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


GENERATED: dict[str, tuple[Path, Callable[[], str]]] = {
    "functions": (PACKAGES, functions),
    "column": (PACKAGES, column),
    "config_toml": (PACKAGES, config_toml),
    "problems_of_packages": (PACKAGES, problems_of_packages),
    "engine_events": (ARTIFACT, engine_events),
    "engine_errors": (ARTIFACT, engine_errors),
}


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_part_is_what_the_code_says(name: str) -> None:
    check(GENERATED, name, "run: .venv/bin/python -m tests.unit.test_engine_docs")


def test_every_argument_of_a_field_is_described() -> None:
    described = re.findall(r"^\| `(\w+)` \| .* \| .* \|$", _section("## Field"), re.MULTILINE)
    assert set(described) == {one.name for one in fields(Field)}


def _section(heading: str) -> str:
    return PACKAGES.read_text().partition(f"{heading}\n")[2].partition("\n## ")[0]


def test_the_how_to_is_a_package_that_loads(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n# (\S+\.py)\n(.*?)^```", HOW_TO.read_text(), re.DOTALL | re.M)
    assert {name for name, _ in blocks} == {"columns/member_id.py", "row_types/note.py"}
    for name, text in blocks:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with load_package(tmp_path) as package:
        assert package.warnings == ()
        assert [one.function.rule for one in package.row_detectors] == ["row.note.balance_lines"]


def test_the_reasons_are_explained() -> None:
    explained = re.findall(r"^\| `(\w+)` \|", MAPPING.read_text(), re.MULTILINE)
    assert {reason.value for reason in Reason} <= set(explained)


if __name__ == "__main__":
    write(GENERATED)

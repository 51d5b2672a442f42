"""The examples for compose and Kubernetes: they parse, and what they name exists."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from typer.main import get_command

from ade.cli import app as command_line
from ade.settings import all_settings

EXAMPLES = Path(__file__).parents[2] / "examples"
COMPOSE = sorted((EXAMPLES / "compose").glob("*.yaml"))
KUBERNETES = sorted((EXAMPLES / "kubernetes").glob("*.yaml"))
SETTINGS = {name for one in all_settings() for name in (one.variable, *one.aliases)}
# What compose takes from `.env`, besides what it hands on to ADE under the same name.
OF_COMPOSE = {"ADE_DATABASE_PASSWORD"}
SHARED = "/opt/opeva_shared_data"


class Program(NamedTuple):
    """Hold how a program of ADE is started somewhere."""

    name: str
    words: list[str]
    variables: dict[str, str | None]
    mounts: set[str]


def _documents(path: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def _of_compose(path: Path) -> Iterator[Program]:
    [document] = _documents(path)
    for name, service in document["services"].items():
        if service["image"] == "ade":
            mounts = {_path_inside(volume) for volume in service["volumes"]}
            yield Program(name, service["command"], service["environment"], mounts)


def _path_inside(volume: str) -> str:
    return _filled(volume).split(":")[1]


def _filled(text: str) -> str:
    """Put in the defaults of compose for what `.env` leaves out."""
    return re.sub(r"\$\{\w+(?::[-?]([^}]*))?\}", lambda found: found[1] or "given", text)


def _of_kubernetes(path: Path) -> Iterator[Program]:
    for document in _documents(path):
        for container in _pod(document).get("containers", ()):
            if container["image"] == "ade":
                variables = {one["name"]: one.get("value") for one in container["env"]}
                mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
                yield Program(container["name"], container["args"], variables, mounts)


def _pod(document: dict[str, Any]) -> dict[str, Any]:
    spec = document["spec"].get("template", {}).get("spec", {})
    return dict(spec)


PROGRAMS = [
    pytest.param(program, id=f"{path.parent.name}-{program.name}")
    for paths, read in ((COMPOSE, _of_compose), (KUBERNETES, _of_kubernetes))
    for path in paths
    for program in read(path)
]


def _options(command: str) -> Any:
    commands: dict[str, Any] = get_command(command_line).commands  # type: ignore[attr-defined]
    return commands[command].params


def _variables_of(command: str) -> set[str]:
    """Name the variables that a command takes: those of its options, or the settings."""
    named = [option.envvar for option in _options(command) if option.envvar]
    own = {name for one in named for name in ([one] if isinstance(one, str) else one)}
    return own if command == "agent" else SETTINGS


def test_there_are_a_server_and_an_agent_of_each() -> None:
    found = {str(param.id) for param in PROGRAMS}
    assert found == {
        f"{way}-{name}" for way in ("compose", "kubernetes") for name in ("server", "agent")
    }


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_command_and_its_options_exist(program: Program) -> None:
    command, *options = program.words
    known = {name for option in _options(command) for name in option.opts + option.secondary_opts}
    assert set(options) <= known


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_variables_exist_and_their_values_are_text(program: Program) -> None:
    assert set(program.variables) <= _variables_of(program.words[0])
    assert all(value is None or isinstance(value, str) for value in program.variables.values())


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_shared_folder_is_mounted_where_the_program_looks(program: Program) -> None:
    folder = program.variables["VM_SHARED_DATA"]
    assert folder is not None
    assert _filled(folder) == SHARED
    assert SHARED in program.mounts


def test_compose_asks_only_for_what_the_readme_or_a_default_gives() -> None:
    for path in COMPOSE:
        text = path.read_text()
        asked = set(re.findall(r"\$\{(\w+):\?", text))
        given = set(re.findall(r"^(\w+)=", (path.parent / "README.md").read_text(), re.MULTILINE))
        assert asked <= given
        handed_on = {name for param in PROGRAMS for name in param.values[0].variables}  # type: ignore[union-attr]
        assert set(re.findall(r"\$\{(\w+)", text)) <= handed_on | OF_COMPOSE


@pytest.mark.parametrize("path", KUBERNETES, ids=lambda path: path.stem)
def test_the_volumes_of_each_pod_are_declared(path: Path) -> None:
    for document in _documents(path):
        pod = _pod(document)
        templates = document["spec"].get("volumeClaimTemplates", ())
        declared = {volume["name"] for volume in pod.get("volumes", ())}
        declared |= {template["metadata"]["name"] for template in templates}
        used = {
            mount["name"]
            for container in pod.get("containers", ())
            for mount in container["volumeMounts"]
        }
        assert used == declared


def test_the_agent_finds_its_engine_and_the_service_its_server() -> None:
    agent = _pod(_documents(EXAMPLES / "kubernetes" / "agent.yaml")[0])["containers"]
    [socket] = [one["value"] for one in agent[0]["env"] if one["name"] == "ADE_AGENT_ENGINE"]
    assert socket in agent[1]["command"]
    claim, server, service = _documents(EXAMPLES / "kubernetes" / "server.yaml")
    assert service["spec"]["selector"] == server["spec"]["template"]["metadata"]["labels"]
    [address] = [one["value"] for one in agent[0]["env"] if one["name"] == "ADE_AGENT_SERVER"]
    assert address == f"http://{service['metadata']['name']}"
    assert claim["metadata"]["name"] == "ade-shared"

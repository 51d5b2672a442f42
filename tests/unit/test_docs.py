"""The docs say what the code does: generated parts, links, variables, and every example.

Parts between `<!-- generated: NAME -->` and `<!-- end -->` are written from the code by
`.venv/bin/python -m tests.unit.test_docs`.
"""

import ast
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from prometheus_client.metrics import MetricWrapperBase
from pydantic import TypeAdapter
from tests.generated import check, table, write
from typer.main import get_command

from ade.agents.scale_config import key_rows
from ade.app.job_requests import Caller, JobRequests
from ade.app.request_schemas import JobRequest
from ade.app.simulations import SimulationRequest
from ade.cli import app as command_line
from ade.cli.exit_codes import ExitCode
from ade.domain import errors
from ade.domain.build import BUILD_FAILED
from ade.domain.errors import AdeError
from ade.domain.events import EventType
from ade.domain.job import TRANSITIONS, WAIT_ENDS, Cause, mermaid
from ade.domain.outcome import Category
from ade.domain.retry import RETRIED_BY_ITSELF
from ade.http.problems import CODES
from ade.http.schemas import agents, catalogue, directory, jobs, operations
from ade.kinds import load_kinds
from ade.settings import Settings, all_settings
from ade.settings_reader import CLIENT_VARIABLES, TEST_PREFIX
from ade.stages.agents.report import AGENT_CODES
from ade.telemetry import metrics
from ade_engine.entry import activate, cell

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
REGENERATE = "run: .venv/bin/python -m tests.unit.test_docs"
KIND_PAGE = DOCS / "how-to" / "write-a-kind.md"
# Only the changelog names settings that no longer exist.
REMOVED_SETTINGS = {"ADE_BUILD_CONCURRENCY"}

# --- parts that are written from the code ---------------------------------------------------------


def diagram() -> str:
    return f"```mermaid\n{mermaid()}\n```"


def transitions() -> str:
    return table(
        "| from | to | cause | meaning |",
        (
            (
                f"`{step.source.value}`" if step.source else "–",
                f"`{step.target.value}`",
                f"`{step.cause.value}`",
                step.cause.meaning,
            )
            for step in TRANSITIONS
        ),
    )


def wait_ends() -> str:
    return table(
        "| cause | meaning |",
        ((f"`{one.cause.value}`", one.cause.meaning) for one in WAIT_ENDS),
    )


def causes() -> str:
    return table(
        "| cause | meaning |",
        ((f"`{cause.value}`", cause.meaning) for cause in Cause),
    )


def problems() -> str:
    known = {kind.code: (kind.status, kind.title()) for kind in _tree(AdeError)}
    plain = {code: (status, "") for status, code in CODES.items() if code not in known}
    titles = {
        "bad_request": "The request cannot be read",
        "method_not_allowed": "The path does not support this method; `Allow` lists the others",
        "request_timeout": "The request did not arrive in time",
        "url_too_long": "The URL is too long",
        "head_too_large": "The headers are too large or too many",
        "unsupported_media_type": "The body must be of another type; the detail says of which",
        "range_not_satisfiable": "The range begins after the end of the file",
    }
    known |= {code: (status, titles[code]) for code, (status, _) in plain.items()}
    ordered = sorted(known.items(), key=lambda item: (item[1][0], item[0]))
    return table(
        "| code | status | meaning |",
        ((f"`{code}`", str(status), f"{title}.") for code, (status, title) in ordered),
    )


def categories() -> str:
    return table(
        "| category | tried again by ADE |",
        ((f"`{c.value}`", "yes" if c in RETRIED_BY_ITSELF else "no") for c in Category),
    )


def metric_table() -> str:
    found = [one for one in vars(metrics).values() if isinstance(one, MetricWrapperBase)]
    return table(
        "| name | type | labels | meaning |",
        (
            (
                f"`{one._name}{'_total' if one._type == 'counter' else ''}`",
                str(one._type),
                ", ".join(f"`{label}`" for label in one._labelnames),
                one._documentation,
            )
            for one in found
        ),
    )


def scale_keys() -> str:
    return table("| key | default | allowed | meaning |", key_rows())


def commands() -> str:
    root: Any = get_command(command_line)
    return table(
        "| command | does |",
        ((f"`{name}`", _first_sentence(command.help)) for name, command in _below("ade", root)),
    )


def _below(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    """List a command and all below it, without the groups that do nothing by themselves."""
    below = getattr(command, "commands", {})
    if words != "ade" and (not below or command.invoke_without_command):
        yield words, command
    for name, one in below.items():
        yield from _below(f"{words} {name}", one)


def _first_sentence(help: str) -> str:
    return " ".join(help.partition("\n\n")[0].split())


def layers() -> str:
    return _layers("ade", "domain")


def engine_layers() -> str:
    return _layers("ade_engine", "sheets")


def _layers(container: str, member: str) -> str:
    """List the layers of a package as import-linter checks them, the highest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for contract in project["tool"]["importlinter"]["contracts"]:
        prefix = "" if container in contract.get("containers", ()) else f"{container}."
        lines = [
            [name.strip().removeprefix(prefix) for name in layer.split("|") if "(" not in name]
            for layer in contract.get("layers", ())
        ]
        if f"{prefix}{member}" in contract.get("layers", ()):
            return "\n".join(["```", *("  ".join(line) for line in lines), "```"])
    raise LookupError(f"no contract has the layer {member}")


GENERATED: dict[str, tuple[Path, Callable[[], str]]] = {
    "diagram": (DOCS / "explanation" / "states.md", diagram),
    "transitions": (DOCS / "explanation" / "states.md", transitions),
    "wait ends": (DOCS / "explanation" / "states.md", wait_ends),
    "causes": (DOCS / "reference" / "events.md", causes),
    "problems": (DOCS / "reference" / "errors.md", problems),
    "categories": (DOCS / "reference" / "errors.md", categories),
    "metrics": (DOCS / "reference" / "metrics.md", metric_table),
    "scale keys": (DOCS / "reference" / "scale-file.md", scale_keys),
    "commands": (DOCS / "reference" / "cli.md", commands),
    "layers": (DOCS / "explanation" / "architecture.md", layers),
    "engine layers": (DOCS / "explanation" / "architecture.md", engine_layers),
}


def _tree(kind: type[AdeError]) -> Iterator[type[AdeError]]:
    if kind.__module__ == errors.__name__:
        yield kind
    for below in kind.__subclasses__():
        yield from _tree(below)


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_part_is_what_the_code_says(name: str) -> None:
    check(GENERATED, name, REGENERATE)


# --- lists that people wrote, and that must be complete -------------------------------------------


def _first_column(page: Path, pattern: str) -> set[str]:
    return set(re.findall(rf"^\| `({pattern})` \|", page.read_text(), re.MULTILINE))


def test_every_event_type_is_described() -> None:
    described = _first_column(DOCS / "reference" / "events.md", r"[a-z_]+\.[a-z_]+")
    assert described == {kind.value for kind in EventType}


def test_every_code_of_a_failed_job_is_described() -> None:
    written = {code for path in (ROOT / "src").rglob("*.py") for code in _job_codes(path)}
    described = _first_column(DOCS / "reference" / "errors.md", r"[A-Z_]+")
    # The codes of an AdeError in a worker are those of its class, in capitals.
    written |= {"VALIDATION_ERROR", "FILES_GONE", BUILD_FAILED}
    # Those that an agent may report.
    written |= AGENT_CODES.keys()
    # Exceptions of the engine that declare their own code.
    written |= {cell.NoEntrypoint.code, activate.PackageNotImportable.code}
    assert described - {c.value for c in Category} | {"VALIDATION_ERROR"} == written


def _job_codes(path: Path) -> Iterator[str]:
    """Find the codes that `JobError`, `limit_error` and `_internal` are called with."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            place = {"JobError": 1, "limit_error": 0, "_internal": 0}.get(name or "")
            if place is not None and len(node.args) > place:
                code = node.args[place]
                if isinstance(code, ast.Constant):
                    yield str(code.value)


def test_every_command_option_and_exit_code_is_described() -> None:
    text = (DOCS / "reference" / "cli.md").read_text()
    commands: Any = get_command(command_line)
    for name, command in commands.commands.items():
        assert f"## ade {name}\n" in text
        options = [
            option
            for param in command.params
            for option in param.secondary_opts or param.opts
            if option.startswith("-")  # pages write arguments in capitals
        ]
        assert [option for option in options if f"`{option}`" not in text] == []
    described = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert described == {code.value for code in ExitCode}


# --- links and variables --------------------------------------------------------------------------


def _prose(text: str) -> str:
    """Leave out code blocks."""
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", _prose(page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(), re.MULTILINE)
            assert anchor in {_anchor(heading) for heading in headings}, target


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_page_is_reached_from_the_first() -> None:
    seen: set[Path] = set()
    waiting = [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen and page.suffix == ".md":
            seen.add(page)
            links = re.findall(r"\]\(([^)#\s:]+)", _prose(page.read_text()))
            waiting += [(page.parent / link).resolve() for link in links]
    assert not set(DOCS.rglob("*.md")) - seen


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_variables_are_settings(page: Path) -> None:
    known = {variable for setting in all_settings() for variable in setting.variables}
    known |= CLIENT_VARIABLES
    known |= set(_variables_of_options())
    known |= REMOVED_SETTINGS if page.name == "CHANGELOG.md" else set()
    named = set(re.findall(r"\bADE_[A-Z0-9_]+\b", page.read_text()))
    assert {name for name in named - known if not name.startswith(TEST_PREFIX)} == set()


def _variables_of_options() -> Iterator[str]:
    """Find the variables that stand for options of commands, such as those of `ade agent`."""
    commands: Any = get_command(command_line)
    for command in commands.commands.values():
        for param in command.params:
            given = param.envvar or ()
            yield from [given] if isinstance(given, str) else given


# --- paths and names in the source ----------------------------------------------------------------

MAPS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", DOCS / "explanation" / "architecture.md"]
# A path, perhaps with what the file defines: `src/ade/kernel.py: Kernel.submit`.
PATH = re.compile(r"((?:src|tests|scripts|docs|bench|examples)/[\w./-]*)(?:: ([\w.]+))?")


@pytest.mark.parametrize("page", MAPS, ids=lambda page: page.stem)
def test_paths_and_names_in_the_source_exist(page: Path) -> None:
    spans = re.findall(r"`([^`\n]+)`", _prose(page.read_text()))
    tree = re.findall(r"^\w\S*/\S*(?= |$)", page.read_text(), re.MULTILINE)
    found = [match for span in (*spans, *tree) if (match := PATH.fullmatch(span))]
    assert len(found) > 10
    unknown = [match[0] for match in found if not _is_in_the_tree(match[1], match[2])]
    assert unknown == []


def _is_in_the_tree(path: str, name: str | None) -> bool:
    """Tell whether a path exists and, if a name is given, whether the file defines it."""
    file = ROOT / path
    if name is None or not file.is_file():
        return name is None and file.exists()
    text = file.read_text()
    return all(re.search(rf"\b(?:class|def) {part}\b", text) for part in name.split("."))


# --- examples -------------------------------------------------------------------------------------

PLACEHOLDERS = {
    "api": "http://127.0.0.1:8000/api/v1/workspaces/default",
    "host": "http://127.0.0.1:8000",
    "auth": "Authorization: Bearer a-key-of-the-docs",
    "job": "0198c0de-0000-7000-8000-000000000001",
    "key_id": "0198c0de-0000-7000-8000-000000000002",
    "document": "0198c0de-0000-7000-8000-000000000003",
    "configuration": "0198c0de-0000-7000-8000-000000000004",
    "build": "0198c0de-0000-7000-8000-000000000005",
    "artifact": "0198c0de-0000-7000-8000-000000000006",
    "session_id": "0198c0de-0000-7000-8000-000000000007",
    "ADE_BOOTSTRAP_API_KEY": "a-key-of-the-docs",
}
BODIES: dict[str, Any] = {
    "/cancel": jobs.ReasonRequest,
    "/interrupt": jobs.ReasonRequest,
    "/resolve": jobs.ResolveRequest,
    "/clear": jobs.NoteRequest,
    "/members": directory.MemberRequest,
    "/keys": directory.KeyRequest,
    "/workspaces": directory.WorkspaceRequest,
    "/configurations": catalogue.ConfigurationRequest,
    "/run-simulation": SimulationRequest,
    "/agents": agents.AgentRequest,
    "/pause": operations.PauseRequest,
    "/resume": operations.ResumeRequest,
}


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def _requests(page: Path) -> Iterator[tuple[str, str, str | None]]:
    """Read the curl commands of a page: method, path, body."""
    for block in _blocks(page, "sh"):
        script = block.replace("\\\n", " ")
        for found in re.finditer(r"^curl ", script, re.MULTILINE):
            yield _request(_first_command(script[found.start() :]))


def _first_command(script: str) -> str:
    """Cut what follows the first command: its line ends outside of quotes."""
    quote = ""
    for place, character in enumerate(script):
        if character in ("'", '"') and quote in ("", character):
            quote = "" if quote else character
        elif character == "\n" and not quote:
            return script[:place]
    return script


def _request(command: str) -> tuple[str, str, str | None]:
    words = shlex.split(command, comments=True)
    words = [re.sub(r"\$(\w+)", lambda found: PLACEHOLDERS[found[1]], word) for word in words]
    method = body = None
    for flag, value in pairwise(words):
        method = value if flag == "-X" else method
        body = value if flag == "-d" else body
    url = next(word for word in words if word.startswith("http://"))
    return method or ("POST" if body else "GET"), re.sub(r"^http://[^/]+", "", url), body


EXAMPLES = [
    pytest.param(method, path, body, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, (method, path, body) in enumerate(_requests(page))
]


def test_the_pages_that_should_have_examples_have_them() -> None:
    found = {str(example.id).rpartition("-")[0] for example in EXAMPLES}
    expected = {"README", "quickstart", "lanes", "retry-safely", "keys-and-roles", "run-a-cell"}
    expected |= {"documents-and-configurations", "agents-from-nothing"}
    assert expected <= found


@pytest.mark.parametrize(("method", "path", "body"), EXAMPLES)
def test_an_example_is_a_request_that_the_api_takes(
    method: str, path: str, body: str | None
) -> None:
    described = {
        path: operations
        for name in ("openapi", "worker-contract")
        for path, operations in json.loads((DOCS / "reference" / f"{name}.json").read_text())[
            "paths"
        ].items()
    }
    fitting = [
        operations
        for template, operations in described.items()
        if re.fullmatch(_pattern(template), path.partition("?")[0])
    ]
    assert any(method.lower() in operations for operations in fitting), f"{method} {path}"
    if body is None:
        return
    if path.endswith("/jobs"):
        _check_job(body.encode())
    else:
        TypeAdapter(BODIES["/" + path.rpartition("/")[2]]).validate_json(body)


def _pattern(template: str) -> str:
    """Match the paths of a route; a path of a file may have several parts."""
    return re.sub(r"\{\w+\}", "[^/]+", template.replace("{path}", ".+"))


def _check_job(body: bytes) -> None:
    """Take a job in as the server does."""
    if b'"greet"' in body:
        return  # the test below runs it
    requests = JobRequests(Settings(), load_kinds())
    asked = cast(JobRequest, requests.parse(body))
    requests.submission(asked, Caller("workspace", "user"))


def test_the_page_on_kinds_is_a_package_whose_job_runs(tmp_path: Path) -> None:
    """Install what the page shows beside ADE, serve, and send the page's request."""
    python = _install(tmp_path)
    (_, path, body) = next(iter(_requests(KIND_PAGE)))
    environ = {
        "PATH": os.environ["PATH"],
        "ADE_SANDBOX": "none",
        "ADE_BOOTSTRAP_API_KEY": "a-key-of-the-docs",
        "ADE_STORAGE_DATA_DIR": str(tmp_path / "data"),
    }
    main = "from ade.cli import main; main()"
    with subprocess.Popen(
        [python, "-c", main, "serve", "--port", "0"],
        cwd=tmp_path,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            address = re.search(r"http://[\d.:]+", server.stdout.readline())
            assert address is not None, "the server did not start"
            headers = {"Authorization": "Bearer a-key-of-the-docs", "Prefer": "wait=30"}
            headers["Content-Type"] = "application/json"
            with httpx.Client(base_url=address[0], headers=headers, timeout=60) as client:
                job = client.post(path, content=body).json()
                assert job["status"] == "succeeded", job
                result = client.get(job["links"]["result"]).json()
        finally:
            server.send_signal(signal.SIGTERM)
    assert result["outputs"]["result_json"] == {"greeting": "Hello, Rosa!\nHello, Rosa!"}
    assert result["outputs"]["stdout"] == "greeted 2 times\n"


def _install(folder: Path) -> Path:
    """Lay the page's files out as an installed package, in an environment that also sees ADE."""
    made = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    packages = next((made / "lib").glob("python3*")) / "site-packages"
    ours = sysconfig.get_path("purelib")
    (packages / "ade.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    for block in _blocks(KIND_PAGE, "python"):
        name, _, text = block.partition("\n")
        file = packages / name.removeprefix("# ")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    declared = _blocks(KIND_PAGE, "toml")[0]
    entry = re.search(r'^(\w+) = "(greeter\.kind:\w+)"$', declared, re.MULTILINE)
    assert entry is not None
    about = packages / "greeter-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[ade.kinds]\n{entry[1]} = {entry[2]}\n")
    return made / "bin" / "python"


if __name__ == "__main__":
    write(GENERATED)

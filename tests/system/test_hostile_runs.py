"""Configurations that do what they should not: each ends in its category, with words that help."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.processes import eventually, is_alive, jobs_of, tree
from tests.sandbox.modes import BY_NAME, can_run
from tests.system.runs import BASE, configured, ended, ran, started, succeeded, uploaded
from tests.system.server import JOBS, Server, starting

DOCKER = BY_NAME["docker"]
SECRETS = ("Vermeulen-7", "Oyelaran-9")
DOCUMENT = f"Name,Amount\n{SECRETS[0]},1\n{SECRETS[1]},2\n".encode()
FILE = "columns/name.py"
HEAD = "from ade_engine import Field\n\nFIELD = Field(label='Name', required=True)\n\n\n"
FIRST_LINE = 7  # of the body of `transform`

needs_root = pytest.mark.skipif(
    not can_run(DOCKER), reason="only root can take rights away as Docker does"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve for all tests of this module, with all sandbox layers that this machine allows."""
    with starting(
        tmp_path_factory.mktemp("hostile"), ADE_LOG_LEVEL="warning", ADE_QUEUE_SIZE=0
    ) as start:
        yield start.server()


@pytest.fixture(scope="module")
def in_docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve with what Docker's default profile leaves: no process may be started."""
    folder = tmp_path_factory.mktemp("hostile")
    with starting(folder, DOCKER.command([]), ADE_QUEUE_SIZE=0) as start:
        yield start.server()


def package(body: str, name: str = "transform(value)") -> dict[str, str]:
    """Make a package of one column whose function does this."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return {FILE: f"{HEAD}def {name}:\n{lines}"}


def failed(server: Server, files: dict[str, str], **limits: int) -> dict[str, Any]:
    """Run a package that must fail; return its error, which must hold no value."""
    document_id = uploaded(server, DOCUMENT)
    asked = {"limits": limits} if limits else {}
    run = ran(server, configured(server, files, template=None), document_id, **asked)
    assert run["status"] == "failed"
    job = {"job_id": run["run_id"]}
    shown = json.dumps([run, server.job(job), server.result(job), server.events(job)])
    artifact = server.http.get(run["links"]["artifact"]).text
    assert not [secret for secret in SECRETS if secret in shown + artifact]
    assert server.http.get(run["links"]["output"]).status_code == 404
    return dict(run["error"])


def kind(error: dict[str, Any]) -> tuple[str, str]:
    """Name the kind of an error."""
    return error["category"], error["code"]


# --- in a function --------------------------------------------------------------------------------


def test_what_is_printed_is_kept_apart(server: Server) -> None:
    files = package("print('seen')\nreturn value")
    run = succeeded(server, configured(server, files, template=None), uploaded(server, DOCUMENT))
    assert server.http.get(run["links"]["logs"]).text == "seen\nseen\n"
    assert "seen" not in server.http.get(run["links"]["artifact"]).text


@pytest.mark.parametrize(
    ("body", "exception"),
    [
        ("raise ValueError('cannot read ' + value)", "ValueError"),
        ("return {}[value]", "KeyError"),
        ("raise type(value, (Exception,), {})", "Exception"),
        ("raise SystemExit(value)", "SystemExit"),
        ("return transform(value)", "RecursionError"),
    ],
)
def test_an_exception_names_file_line_field_and_no_value(
    server: Server, body: str, exception: str
) -> None:
    found = failed(server, package(body))
    assert kind(found) == ("USER_CODE_ERROR", "AUTHOR_CODE_FAILED")
    details = found["details"]
    assert (details["file"], details["field"]) == (FILE, "name")
    assert (details["exception"], details["cell"]) == (exception, "A2")
    assert f"{FILE}:{details['line']}" in found["message"]
    assert details["line"] == FIRST_LINE


def test_an_unusable_value_is_reported_with_its_function(server: Server) -> None:
    found = failed(server, package("return type(value, (Exception,), {})"))
    assert kind(found) == ("USER_CODE_ERROR", "AUTHOR_CODE_FAILED")
    assert f"{FILE}:{FIRST_LINE - 1}" in found["message"]


def test_an_interrupt_of_its_own_shows_no_value(server: Server) -> None:
    found = failed(server, package("raise KeyboardInterrupt(value)"))
    assert found["category"] == "USER_CODE_ERROR"


@pytest.mark.parametrize(
    ("body", "limits", "code", "line"),
    [
        ("while True: pass", {"cpu_ms": 1000}, "CPU_LIMIT", 0),
        ("import re\nre.match('(a+)+$', 'a' * 60 + 'b')", {"cpu_ms": 1000}, "CPU_LIMIT", 1),
        ("import time\ntime.sleep(600)", {"timeout_ms": 1500}, "TIMED_OUT", 1),
        ("kept = []\nwhile True: kept.append(bytearray(1 << 20))", {"memory_mb": 128},
         "MEMORY_LIMIT", 1),
        ("bytearray(1 << 40)", {"memory_mb": 128}, "MEMORY_LIMIT", 0),
        ("while True: print('x' * 100_000)", {"max_output_kb": 1}, "OUTPUT_LIMIT", 0),
    ],
    ids=["cpu", "library", "clock", "memory", "too much at once", "output"],
)  # fmt: skip
def test_a_limit_is_named_and_the_place_where_it_was_reached(
    server: Server, body: str, limits: dict[str, int], code: str, line: int
) -> None:
    found = failed(server, package(body), **limits)
    assert kind(found) == ("RESOURCE_LIMIT", code)
    details = found["details"]
    assert code == "OUTPUT_LIMIT" or limits.items() <= details.items()
    assert (details["file"], details["line"]) == (FILE, FIRST_LINE + line), found
    assert (details["function"], details["field"]) == ("transform", "name")
    assert details["source"] == body.splitlines()[line]
    where = f", in transform ({FILE}:{FIRST_LINE + line}, field name)."
    assert found["message"].endswith(where)


def test_the_place_is_in_a_module_that_several_fields_share(server: Server) -> None:
    files = package("from ._shared import spin\nreturn spin(value)")
    files["columns/_shared.py"] = "def spin(value):\n    while True: pass\n"
    found = failed(server, files, cpu_ms=1000)
    details = found["details"]
    assert (details["file"], details["line"]) == ("columns/_shared.py", 2)
    assert (details["function"], details["field"]) == ("spin", "name")


def test_a_place_that_is_made_up_shows_no_value(server: Server) -> None:
    """It compiles code under the name of the document, and of the value, and stays in there."""
    for name in ("value", "__import__('glob').glob('inputs/*')[0]", f"'{FILE}'"):
        source = "'def ' + value.replace('-', '_') + '(): \\n while True: pass'"
        body = (
            f"exec(compile({source}, {name}, 'exec'), globals())\n"
            "globals()[value.replace('-', '_')]()"
        )
        found = failed(server, package(body), cpu_ms=1000)
        assert kind(found) == ("RESOURCE_LIMIT", "CPU_LIMIT")
        assert found["details"]["field"] == "name"
        assert "Vermeulen" not in json.dumps(found)


def test_the_engine_says_what_it_did_when_its_time_was_up(server: Server) -> None:
    rows = "".join(f"name {number},{number}\n" for number in range(400_000))
    document_id = uploaded(server, f"Name,Amount\n{rows}".encode())
    limits = {"cpu_ms": 300}
    files = package("return value")
    run = ran(server, configured(server, files, template=None), document_id, limits=limits)
    assert kind(run["error"]) == ("RESOURCE_LIMIT", "CPU_LIMIT")
    details = run["error"]["details"]
    assert details.get("doing") or details.get("file") == FILE, run["error"]


REFUSED = {
    "writes outside": ("open('/usr/lib/planted.py', 'w')", None),
    "opens a socket": ("__import__('socket').create_connection(('127.0.0.1', 9))", "AF_INET"),
    "listens": ("__import__('socket').socket().bind(('0.0.0.0', 8099))", "AF_INET"),
}


@pytest.mark.parametrize("way", REFUSED)
def test_what_is_refused_is_a_violation_in_a_place(server: Server, way: str) -> None:
    body, refused = REFUSED[way]
    found = failed(server, package(body))
    assert kind(found) == ("SANDBOX_VIOLATION", "OPERATION_DENIED")
    assert f"{FILE}:{FIRST_LINE}" in found["message"]
    assert found["details"]["field"] == "name"
    if refused:
        assert refused in found["message"]


def test_what_is_refused_fails_in_a_place(server: Server) -> None:
    found = failed(server, package(REFUSED["opens a socket"][0]))
    assert (found["details"]["file"], found["details"]["line"]) == (FILE, FIRST_LINE)
    assert found["details"]["field"] == "name"
    assert found["details"]["refused"] == ["socket AF_INET"]


FORK = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nreturn value"


def test_a_process_that_is_left_behind_dies_with_the_run(server: Server) -> None:
    configuration_id = configured(server, package(FORK), template=None)
    run = ran(server, configuration_id, uploaded(server, DOCUMENT))
    if "pid" not in server.job({"job_id": run["run_id"]})["isolation"]:
        pytest.skip("a run may start no process at this level")
    assert run["status"] == "succeeded", run["error"]
    eventually(lambda: not jobs_of(server.pid))


@needs_root
def test_no_process_is_started_without_namespaces(in_docker: Server) -> None:
    found = failed(in_docker, package(FORK))
    assert found["details"]["line"] == FIRST_LINE + 1
    assert "clone" in found["details"]["refused"]
    assert not jobs_of(in_docker.pid)


def test_cancel_kills_a_run_that_does_not_listen(server: Server) -> None:
    body = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
    configuration_id = configured(server, package(body), template=None)
    run = started(server, configuration_id, uploaded(server, DOCUMENT))
    job = {"job_id": run["run_id"]}
    server.wait(job, lambda found: found["status"] == "running")
    processes = eventually(lambda: jobs_of(server.pid))
    server.http.post(f"{JOBS}/{run['run_id']}/cancel")
    assert ended(server, run)["status"] == "cancelled"
    assert not any(map(is_alive, processes))


# --- against the runtime --------------------------------------------------------------------------

OVERWRITE = (
    "import os\nfor folder, _, names in os.walk('.'):\n    for name in names:\n"
    "        try:\n            open(os.path.join(folder, name), 'w').write('planted')\n"
    "        except OSError:\n            pass\nreturn value"
)
LINK = (
    "import os\nfor name in ('artifact.json', 'normalized.xlsx'):\n"
    "    if not os.path.lexists('output/' + name):\n"
    "        os.symlink('/etc/passwd', 'output/' + name)\nreturn value"
)


@pytest.mark.parametrize("body", [OVERWRITE, LINK], ids=["overwrite", "link"])
def test_only_the_runs_own_copies_can_be_spoilt(server: Server, body: str) -> None:
    configuration_id = configured(server, package(body), template=None)
    document_id = uploaded(server, DOCUMENT)
    run = ran(server, configuration_id, document_id)
    assert server.http.get(f"{BASE}/documents/{document_id}/content").content == DOCUMENT
    file = server.http.get(f"{BASE}/configurations/{configuration_id}/files/{FILE}")
    assert file.text == package(body)[FILE]
    for link in ("artifact", "output"):
        assert b"root:" not in server.http.get(run["links"][link]).content
    clean = package("return value")
    good = succeeded(server, configured(server, clean, template=None), document_id)
    assert good["status"] == "succeeded"


REPLACED = {
    "the way out": "import os\nos._exit(0)",
    "json": "import json\njson.dumps = lambda *a, **k: 1 / 0\nreturn value",
    "builtins": "import builtins\nbuiltins.isinstance = lambda *a: False\nreturn value",
    "the channel": (
        "from ade_engine.channel import Channel\nfor name in list(vars(Channel)):\n"
        "    if not name.startswith('__'):\n"
        "        setattr(Channel, name, lambda *a, **k: None)\nreturn value"
    ),
    "descriptors": "import os\nos.closerange(3, 256)\nreturn value",
}


@pytest.mark.parametrize("what", REPLACED)
def test_a_replaced_runtime_harms_only_its_own_run(server: Server, what: str) -> None:
    document_id = uploaded(server, DOCUMENT)
    spoilt = configured(server, package(REPLACED[what]), template=None)
    run = ran(server, spoilt, document_id)
    assert run["status"] == "failed"
    assert run["error"]["category"] == "USER_CODE_ERROR"
    assert run["error"]["message"]
    assert not [secret for secret in SECRETS if secret in json.dumps(run)]
    good = configured(server, package("return value"), template=None)
    assert succeeded(server, good, document_id)["progress"]["done"] == 2


def test_a_run_without_its_record_has_not_succeeded(server: Server) -> None:
    body = (
        "import ade_engine.entry.normalize as n\nn.write_artifact = lambda *a: None\nreturn value"
    )
    configuration_id = configured(server, package(body), template=None)
    run = ran(server, configuration_id, uploaded(server, DOCUMENT))
    assert run["status"] == "failed"


def test_words_on_the_channel_are_not_believed(server: Server) -> None:
    body = (
        "import os\nfor number in range(3, 64):\n    try:\n"
        "        os.write(number, b'\\0\\0\\0\\x02{}' + b'{\"result\": 1}\\n')\n"
        "    except OSError:\n        pass\nreturn value"
    )
    configuration_id = configured(server, package(body), template=None)
    run = ran(server, configuration_id, uploaded(server, DOCUMENT))
    assert run["status"] in ("succeeded", "failed")
    if run["status"] == "failed":
        assert run["error"]["category"] in ("USER_CODE_ERROR", "SANDBOX_VIOLATION")


# --- before any function is called ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("FIELD = (\n", f"{FILE}:1"),
        (f"{HEAD}raise ValueError('no')\n", f"{FILE}:6"),
        (f"{HEAD}import pandora_box\n", "pandora_box"),
        (f"{HEAD}while True: pass\n", f"CPU time ({FILE}:6, field name)"),
    ],
    ids=["syntax", "raises", "module", "loops"],
)
def test_what_fails_while_it_is_loaded_fails_the_build(
    tmp_path_factory: pytest.TempPathFactory, server: Server, source: str, words: str
) -> None:
    files = {FILE: source, "hooks/on_activate.py": "def on_activate():\n    pass\n"}
    if words.startswith("CPU"):
        with starting(tmp_path_factory.mktemp("brief"), ADE_WORKER_CPU_SECONDS=1) as start:
            found = failed(start.server(), files)
    else:
        found = failed(server, files)
    assert kind(found) == ("DEPENDENCY_ERROR", "BUILD_FAILED")
    assert found["message"].startswith("build failed: ")
    assert words in found["message"]


def test_without_anything_to_build_the_run_says_what_fails_while_it_is_loaded(
    server: Server,
) -> None:
    found = failed(server, {FILE: f"{HEAD}import pandora_box\n"})
    assert kind(found) == ("DEPENDENCY_ERROR", "PACKAGE_INVALID")
    assert "pandora_box" in found["message"]


def test_a_hook_that_fails_leaves_the_version_inactive(server: Server) -> None:
    hook = "def on_activate():\n    raise RuntimeError('not today')\n"
    files = package("return value") | {"hooks/on_activate.py": hook}
    configuration_id = configured(server, files, template=None)
    run = ran(server, configuration_id, uploaded(server, DOCUMENT))
    assert kind(run["error"]) == ("DEPENDENCY_ERROR", "BUILD_FAILED")
    assert "hooks/on_activate.py:2" in run["error"]["message"]
    path = f"{BASE}/configurations/{configuration_id}/versions/1/activation"
    shown = server.http.get(path).json()
    assert shown["status"] == "failed"
    assert "hooks/on_activate.py:2" in shown["diagnostics"][0]["message"]


def test_a_hook_that_takes_too_long_is_reported_with_its_location(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    hook = "import time\n\ndef on_activate():\n    time.sleep(600)\n"
    with starting(tmp_path_factory.mktemp("slow"), ADE_BUILD_TIMEOUT=8) as start:
        server = start.server()
        # The clock also runs while an interpreter starts: one is ready after this.
        ran(server, configured(server, package("return value")), uploaded(server, DOCUMENT))
        files = package("return value") | {"hooks/on_activate.py": hook}
        found = failed(server, files)
    assert kind(found) == ("DEPENDENCY_ERROR", "BUILD_FAILED")
    assert found["message"].endswith(
        "stopped while running on_activate, in on_activate (hooks/on_activate.py:4)."
    )


def test_nothing_is_left_of_all_this(server: Server) -> None:
    eventually(lambda: not jobs_of(server.pid))
    assert server.http.get("/readyz").status_code == 200
    assert tree(server.pid)  # the pool lives on

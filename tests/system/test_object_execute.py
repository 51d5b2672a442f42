"""Cells of Python over HTTP, in the sandbox of this machine and in the one that Docker allows."""

import hashlib
from collections.abc import Iterator

import pytest
from tests.processes import eventually, is_alive, jobs_of, name_of, tree
from tests.system.cells import begin, cell, error, run, value
from tests.system.server import JOBS, Server
from tests.system.ways import WAYS, serving


@pytest.fixture(scope="module", params=WAYS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Serve for all tests of this module, in each way."""
    with serving(request.param, tmp_path_factory.mktemp("cells")) as server:
        yield server


# --- what comes back ------------------------------------------------------------------------------


def test_the_value_of_the_last_expression_is_the_result(server: Server) -> None:
    assert value(server, "x = 20\nx * 2 + 2") == 42
    assert value(server, "x = 20") is None


def test_main_is_called_with_the_parameters(server: Server) -> None:
    source = "def main(price, count=2):\n    return price * count\n'not this'"
    assert value(server, source, parameters={"price": 21}) == 42
    other = source.replace("main", "total")
    assert value(server, other, parameters={"price": 4}, entrypoint="total") == 8


def test_parameters_are_names_too(server: Server) -> None:
    assert value(server, "[rate, parameters]", parameters={"rate": 3}) == [3, {"rate": 3}]


def test_values_of_libraries_become_json(server: Server) -> None:
    source = "import numpy, polars\nnumpy.arange(3), polars.DataFrame({'a': [1]}), {2}, 1.5"
    assert value(server, source) == [[0, 1, 2], [{"a": 1}], [2], 1.5]


def test_what_is_printed_comes_back_apart_from_the_result(server: Server) -> None:
    source = "import sys\nprint('to people')\nprint('to logs', file=sys.stderr)\n7"
    outputs = run(server, source)["outputs"]
    assert outputs == {"result_json": 7, "stdout": "to people\n", "stderr": "to logs\n"}


def test_two_spellings_of_one_cell_are_one_piece_of_work(server: Server) -> None:
    plain = cell("a + 1", parameters={"a": 1})
    first = server.http.post(JOBS, json=plain).json()
    content = {"format": "python", "value": "a + 1"}
    explicit = {"content": content, "runtime": {"parameters": {"a": 1}}}
    second = server.http.post(JOBS, json=plain | {"inputs": {"object": explicit}}).json()
    assert second["deduplicated"]
    assert second["job_id"] == first["job_id"]


def test_files_in_artifacts_are_listed_with_their_digests(server: Server) -> None:
    source = (
        "import os\nos.makedirs('artifacts/deep')\n"
        "open('artifacts/deep/a.txt', 'w').write('kept')\n"
        "open('b.txt', 'w').write('kept too')\nos.symlink('/etc/hosts', 'artifacts/link')\n"
    )
    found = run(server, source)
    digest = f"sha256:{hashlib.sha256(b'kept').hexdigest()}"
    beside, kept = found["artifacts"]
    assert beside["name"] == "b.txt"
    assert kept == {
        "artifact_id": kept["artifact_id"],
        "name": "deep/a.txt",
        "kind": "file",
        "format": "txt",
        "digest": digest,
        "size_bytes": 4,
        "uri": f"blob:{digest}",
        "content_type": "text/plain",
        "metadata": {},
    }
    assert [line["message"] for line in found["logs"]] == ["link was not kept: it is a link."]


# --- what goes wrong ------------------------------------------------------------------------------


def test_an_exception_is_reported_with_line_and_column(server: Server) -> None:
    found = error(server, "def f(x):\n    return 1 + x / 0\n\nf(3)\n")
    assert (found["category"], found["code"]) == ("USER_CODE_ERROR", "PYTHON_EXCEPTION")
    assert found["message"] == "ZeroDivisionError: division by zero"
    place = {name: found["details"][name] for name in ("file", "line", "column", "function")}
    assert place == {"file": "cell.py", "line": 2, "column": 16, "function": "f"}
    assert "return 1 + x / 0" in found["details"]["traceback"]
    assert "ade_engine" not in found["details"]["traceback"]


def test_a_syntax_error_is_reported_with_line_and_column(server: Server) -> None:
    found = error(server, "x = 1\ny = (1,\n")
    assert (found["category"], found["code"]) == ("USER_CODE_ERROR", "PYTHON_EXCEPTION")
    assert (found["details"]["line"], found["details"]["column"]) == (2, 5)


def test_a_missing_module_is_named(server: Server) -> None:
    found = error(server, "import pandora_box")
    assert (found["category"], found["code"]) == ("DEPENDENCY_ERROR", "MODULE_NOT_FOUND")
    assert found["details"]["module"] == "pandora_box"


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ("import socket\nsocket.create_connection(('127.0.0.1', 9))", "socket AF_INET"),
        ("import socket\nsocket.socket(socket.AF_UNIX)", "socket AF_UNIX"),
        ("import os\nos.setuid(0)", "setuid"),
    ],
)
def test_a_refused_call_is_named(server: Server, source: str, refused: str) -> None:
    found = error(server, source)
    assert (found["category"], found["code"]) == ("SANDBOX_VIOLATION", "OPERATION_DENIED")
    assert found["details"]["refused"] == [refused]
    assert f"refused: {refused}" in found["message"]
    assert found["details"]["line"] == 2


def test_a_write_outside_is_a_violation(server: Server) -> None:
    found = error(server, "open('/usr/lib/planted.py', 'w')")
    assert (found["category"], found["code"]) == ("SANDBOX_VIOLATION", "OPERATION_DENIED")
    assert "/usr/lib/planted.py" in found["message"]


def test_a_refusal_that_the_code_gets_over_is_a_warning(server: Server) -> None:
    source = "import socket\ntry:\n    socket.socket()\nexcept OSError:\n    pass\n'went on'"
    found = run(server, source)
    assert found["outputs"]["result_json"] == "went on"
    assert found["logs"] == [
        {"level": "warning", "message": "The sandbox refused: socket AF_INET."}
    ]


@pytest.mark.parametrize(
    ("source", "limits", "status", "code"),
    [
        ("x = []\nwhile True:\n    x.append(bytearray(1 << 20))", {"memory_mb": 64}, "FAILED",
         "MEMORY_LIMIT"),
        ("while True:\n    pass", {"cpu_ms": 300}, "FAILED", "CPU_LIMIT"),
        ("import time\ntime.sleep(600)", {"timeout_ms": 300}, "TIMED_OUT", "TIMED_OUT"),
        ("while True:\n    print('x' * 100_000)", {"max_output_kb": 1}, "FAILED", "OUTPUT_LIMIT"),
    ],
    ids=["memory", "cpu", "clock", "output"],
)  # fmt: skip
def test_a_limit_has_its_own_code(
    server: Server, source: str, limits: dict[str, int], status: str, code: str
) -> None:
    found = run(server, source, limits=limits)
    assert (found["status"], found["error"]["code"]) == (status, code)
    assert found["error"]["category"] == "RESOURCE_LIMIT"


def test_usage_is_measured_from_outside(server: Server) -> None:
    source = (
        "import time\nkept = bytearray(80 << 20)\nend = time.process_time() + 0.2\n"
        "while time.process_time() < end:\n    pass\n"
    )
    usage = run(server, source)["resource_usage"]
    assert usage["cpu_ms"] >= 200
    assert 80 <= usage["memory_mb_peak"] < 160


# --- what does not get out ------------------------------------------------------------------------


def test_a_cell_sees_nothing_of_the_server(server: Server) -> None:
    source = (
        "import os\ndef look(path):\n    try:\n        return open(path, 'rb').read().decode()\n"
        "    except OSError:\n        return ''\n"
        "[sorted(os.environ), [look(f'/proc/{p}/environ') for p in ('self', os.getppid())]]"
    )
    names, environs = value(server, source)
    assert {name for name in names if name.startswith("ADE_")} == {"ADE_JOB_FOLDER"}
    assert not any("ADE_BOOTSTRAP_API_KEY" in environ for environ in environs)


def test_a_job_reports_its_sandbox_layers(server: Server) -> None:
    isolation = set(run(server, "1")["job"]["isolation"])
    assert {"landlock", "seccomp"} <= isolation
    assert "network_allowed" not in isolation


def test_network_that_is_off_cannot_be_asked_for(server: Server) -> None:
    asked = cell("1", environment={"network_access": "enabled"})
    answer = server.http.post(JOBS, json=asked)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert "ADE_RUNTIME_NETWORK_ACCESS" in answer.json()["detail"]


DEAF = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


def test_cancel_kills_a_cell_that_does_not_listen(server: Server) -> None:
    eventually(lambda: not jobs_of(server.pid))  # those of earlier tests may still be dying
    job = begin(server, DEAF + "time.sleep(600)")
    (process,) = eventually(lambda: jobs_of(server.pid))
    server.http.post(f"{JOBS}/{job['job_id']}/cancel")
    assert server.ended_job(job)["status"] == "cancelled"
    assert not is_alive(process)


# A grandchild of its own session whose parent is gone, and then another program.
STARTING = """
import os, subprocess
between = os.fork()
if between == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    time.sleep(600)
os.waitpid(between, 0)
subprocess.Popen(["sleep", "600"])
time.sleep(600)
"""


def processes_of(pid: int) -> set[int]:
    """List the processes that run a server's jobs, with what these started."""
    jobs = jobs_of(pid)
    return jobs.union(*map(tree, jobs))


def test_cancel_kills_whatever_a_cell_started(server: Server) -> None:
    if "pid" not in run(server, "1")["job"]["isolation"]:
        pytest.skip("a cell may start no process at this level")
    eventually(lambda: not jobs_of(server.pid))
    job = begin(server, DEAF + STARTING)
    wanted = ["ade-job", "ade-job", "sleep"]
    eventually(lambda: sorted(map(name_of, processes_of(server.pid))) == wanted)
    processes = processes_of(server.pid)
    server.http.post(f"{JOBS}/{job['job_id']}/cancel")
    assert server.ended_job(job)["status"] == "cancelled"
    assert not any(map(is_alive, processes))

"""A run that is stopped at a limit says which limit it was, and what the run was doing."""

from collections.abc import Iterator

import pytest
from tests.system.runs import SAMPLE, configured, ran, uploaded
from tests.system.server import Server, starting

# It does not report its stack, so only the engine's last progress tells where it was.
DEAF = "    import signal, time\n    signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"
HANGING = DEAF + "    time.sleep(600)\n"
TOO_LARGE = (
    "from ade_engine import Field\n\nFIELD = Field(label='Name', required=True)\n\n\n"
    "def transform_column(column):\n    with open('big', 'wb') as big:\n"
    "        for _ in range(9):\n            big.write(bytes(1 << 20))\n    return column\n"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve for all tests of this module."""
    folder = tmp_path_factory.mktemp("limits")
    with starting(folder, ADE_WORKER_FSIZE_MB=1, ADE_BUILD_TIMEOUT=8, ADE_QUEUE_SIZE=0) as start:
        yield start.server()


@pytest.mark.parametrize(
    "event", ["on_job_start", "on_table_mapped", "on_table_written", "on_job_end"]
)
def test_a_run_that_hangs_in_a_hook_says_so(server: Server, event: str) -> None:
    package = {f"hooks/{event}.py": f"def {event}():\n{HANGING}"}
    run = ran(server, configured(server, package), uploaded(server), limits={"timeout_ms": 2000})
    assert run["error"]["code"] == "TIMED_OUT"
    assert run["error"]["message"].endswith(f"and was stopped, while running {event}.")


def test_a_file_that_the_package_makes_too_large_is_that_limit(server: Server) -> None:
    configuration_id = configured(server, {"columns/full_name.py": TOO_LARGE})
    error = ran(server, configuration_id, uploaded(server))["error"]
    assert (error["category"], error["code"]) == ("RESOURCE_LIMIT", "FILE_SIZE_LIMIT")
    assert "columns/full_name.py" in error["message"]


def test_an_output_that_is_too_large_is_that_limit(server: Server) -> None:
    header = SAMPLE.read_text().splitlines()[3]
    rows = [
        f"RC{100000 + n},Ada {n * 7919},ada{n * 104729}@example.org,,,,{n}" for n in range(60000)
    ]
    document_id = uploaded(server, "\n".join([header, *rows]).encode())
    error = ran(server, configured(server), document_id)["error"]
    assert (error["category"], error["code"]) == ("RESOURCE_LIMIT", "FILE_SIZE_LIMIT")


def test_hooks_of_a_build_have_the_time_that_the_setting_names(server: Server) -> None:
    hook = "def on_activate():\n    import time\n    time.sleep(5)\n"
    run = ran(server, configured(server, {"hooks/on_activate.py": hook}), uploaded(server))
    assert run["status"] == "succeeded", run["error"]

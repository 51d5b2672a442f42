"""A cell sees what `python cell.py` sees in its folder, and ends as it would."""

from typing import Any

import pytest
from tests.sandbox.conftest import Drivers
from tests.sandbox.modes import FAST

MODES = [mode for mode in FAST if "landlock" not in mode]  # most of these fork


@pytest.fixture(params=MODES)
def run(request: pytest.FixtureRequest, drivers: Drivers) -> Any:
    """Return a function that runs a cell and returns its report."""
    driver = drivers.of(request.param)

    def run(source: str, **asked: Any) -> dict[str, Any]:
        return driver.run(source=source, **asked)

    return run


VALUES = {
    "argv": ("import sys; sys.argv", ["cell.py"]),
    "argparse": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', default=3)\n"
        "p.parse_args().n",
        3,
    ),
    "its own file": ("import os; [os.path.basename(__file__), os.path.isfile(__file__)]",
                     ["cell.py", True]),
    "its own source": ("import inspect\ndef f(): pass\ninspect.getsource(f)", "def f(): pass\n"),
    "a class's source": (
        "import inspect\nclass A:\n    x = 1\ninspect.getsource(A)", "class A:\n    x = 1\n",
    ),
    "a module beside it": (
        "import os\nopen('beside.py', 'w').write('x = 5')\nimport beside\n"
        "os.remove('beside.py')\nbeside.x",
        5,
    ),
    "sys.path begins with its folder": ("import os, sys; sys.path[0] == os.getcwd()", True),
    "SIGTERM": ("import signal; signal.getsignal(signal.SIGTERM) == signal.SIG_DFL", True),
    "a byte order mark": ("\ufeff1 + 1", 2),
    "python3": (
        "import subprocess, sys\n"
        "c = 'import sys, numpy; print(sys.prefix)'\n"
        "subprocess.check_output(['python3', '-c', c], text=True).strip() == sys.prefix",
        True,
    ),
    "hashes": ("hash('ade')", None),
    "sys.exit(0)": ("import sys\nsys.exit(0)", None),
    "sys.exit()": ("import sys\nsys.exit()", None),
    "exit()": ("exit()", None),
    "sys.exit(main())": ("import sys\ndef main(): return 0\nsys.exit(main())", None),
    "await": ("import asyncio\nasync def f(): return 7\nawait f()", 7),
    "await of a task": (
        "import asyncio\nasync def f(): return 7\nt = asyncio.create_task(f())\nawait t", 7,
    ),
    "async for": (
        "async def g():\n    yield 1\n    yield 2\nfound = [x async for x in g()]\nfound", [1, 2],
    ),
    "no address": ("(x for x in [])", {"repr": "<generator object <genexpr>>"}),
    "a fork that exits": ("import os, sys\np = os.fork()\nif p == 0:\n    sys.exit(0)\n"
                          "os.waitstatus_to_exitcode(os.waitpid(p, 0)[1])", 0),
    "a fork that fails": ("import os\np = os.fork()\nif p == 0:\n    1 / 0\n"
                          "os.waitstatus_to_exitcode(os.waitpid(p, 0)[1])", 1),
    "a fork that reaches the end": ("import os\np = os.fork()\nif p:\n    os.waitpid(p, 0)\n'end'",
                                    "end"),
    "a pool that spawns": (
        "import multiprocessing as m\ndef double(x): return 2 * x\n"
        "if __name__ == '__main__':\n"
        "    with m.get_context('spawn').Pool(1) as pool:\n"
        "        found = pool.map(double, [1, 2])\n"
        "    found",
        [2, 4],
    ),
    "a pool that forks": (
        "import multiprocessing as m\ndef double(x): return 2 * x\n"
        "with m.get_context('fork').Pool(1) as pool:\n    found = pool.map(double, [1, 2])\nfound",
        [2, 4],
    ),
    "a process that is terminated": (
        "import multiprocessing as m, time\n"
        "p = m.get_context('fork').Process(target=time.sleep, args=(60,))\n"
        "p.start(); p.terminate(); p.join()\np.exitcode",
        -15,
    ),
    "unittest.main()": (
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): pass\nunittest.main()",
        None,
    ),
    "the user's name": ("import getpass; getpass.getuser()", "job"),
    "names of users": ("import pwd; [pwd.getpwuid(0).pw_name, pwd.getpwuid(1000).pw_name]",
                       ["root", "job"]),
    "the local host": ("[line.split()[1] for line in open('/etc/hosts')]",
                       ["localhost", "localhost"]),
    "a hidden value": ("1 + 1;", None),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_the_value_is_that_of_a_script(run: Any, name: str) -> None:
    source, value = VALUES[name]
    report = run(source, limits={"cpu_ms": 20_000, "timeout_ms": 60_000, "memory_mb": 256})
    assert report["verdict"] == "succeeded", report
    if name != "hashes":
        assert report["outputs"]["result_json"] == value, report


def test_main_runs_once(run: Any) -> None:
    source = "def main():\n    print('run')\n    return 5\n\nif __name__ == '__main__':\n    main()"
    outputs = run(source, entrypoint="main")["outputs"]
    assert (outputs["stdout"], outputs["result_json"]) == ("run\n", 5)


def test_the_hash_of_a_text_is_the_same_in_every_process(run: Any) -> None:
    source = (
        "import subprocess, sys\n"
        "command = [sys.executable, '-c', 'print(hash(\"ade\"))']\n"
        "[hash('ade'), int(subprocess.check_output(command))]"
    )
    one, other = run(source, limits={"cpu_ms": 9_000})["outputs"]["result_json"]
    assert one == other


def test_threads_and_exit_handlers_are_waited_for(run: Any) -> None:
    source = (
        "import atexit, threading, time\n"
        "found = []\n"
        "def late():\n    time.sleep(0.2)\n    found.append(1)\n    print('thread')\n"
        "atexit.register(print, 'handler')\n"
        "threading.Thread(target=late).start()\n"
        "found"
    )
    outputs = run(source)["outputs"]
    assert outputs["stdout"] == "thread\nhandler\n"
    assert outputs["result_json"] == [1]


def test_an_executor_that_was_not_closed_finishes_its_work(run: Any) -> None:
    source = (
        "from concurrent.futures import ThreadPoolExecutor\nimport time\n"
        "pool = ThreadPoolExecutor(1)\n"
        "pool.submit(lambda: (time.sleep(0.1), print('done')))\n'value'"
    )
    outputs = run(source)["outputs"]
    assert (outputs["stdout"], outputs["result_json"]) == ("done\n", "value")


def test_exit_handlers_run_after_an_error_too(run: Any) -> None:
    report = run("import atexit\natexit.register(print, 'handler')\n1 / 0")
    assert report["verdict"] == "USER_CODE_ERROR/PYTHON_EXCEPTION"
    assert report["outputs"]["stdout"] == "handler\n"


def test_the_message_of_an_exit_is_shown(run: Any) -> None:
    report = run("import sys\nsys.exit('no input')")
    assert report["verdict"] == "USER_CODE_ERROR/EXITED_WITHOUT_RESULT"
    assert "no input" in report["message"]
    assert report["outputs"]["stderr"] == "no input\n"


BUGS = {
    "after a refused socket": (
        "import socket\ntry:\n    socket.socket()\nexcept OSError:\n    pass\nint('abc')"
    ),
    "in the handler of a refusal": (
        "import socket\ntry:\n    socket.socket()\nexcept OSError:\n    int('abc')"
    ),
    "after a listing": "import subprocess\nsubprocess.run(['ls', '-l', '/'])\n[][0]",
    "after uuid1": "import uuid\nuuid.uuid1()\n{}['a']",
}


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_not_blamed_on_the_sandbox(run: Any, name: str) -> None:
    report = run(BUGS[name], limits={"cpu_ms": 9_000})
    assert report["verdict"] == "USER_CODE_ERROR/PYTHON_EXCEPTION", report
    assert "refused" not in report["details"]


REFUSED = {
    "urllib": "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:1')",
    "urllib by name": "import urllib.request\nurllib.request.urlopen('http://example.org')",
    "httpx": "import httpx\nhttpx.get('http://127.0.0.1:1')",
    "a write to the system": "open('/usr/x', 'w')",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_found_behind_what_a_library_raises(run: Any, name: str) -> None:
    report = run(REFUSED[name], limits={"cpu_ms": 20_000, "timeout_ms": 60_000, "memory_mb": 256})
    assert report["verdict"] == "SANDBOX_VIOLATION/OPERATION_DENIED", report


def test_files_in_the_working_folder_are_kept(run: Any) -> None:
    source = (
        "import os\nopen('out.csv', 'w').write('a,b')\nos.makedirs('plots/deep')\n"
        "open('plots/deep/one.txt', 'w').write('x')\nopen('artifacts/own.txt', 'w').write('y')\n"
        "os.makedirs('.cache')\nopen('.cache/z', 'w').write('z')"
    )
    assert sorted(run(source)["kept"]) == ["out.csv", "own.txt", "plots/deep/one.txt"]


def test_a_cell_that_changes_its_folder_loses_nothing(run: Any) -> None:
    source = (
        "import os, polars\nopen('before.txt', 'w').write('x')\nos.mkdir('sub')\nos.chdir('sub')\n"
        "open('after.txt', 'w').write('y')\npolars.DataFrame({'a': [2]})"
    )
    assert sorted(run(source)["kept"]) == [
        "before.txt",
        "result.csv",
        "result.parquet",
        "sub/after.txt",
    ]


def test_files_that_do_not_fit_are_named(run: Any) -> None:
    report = run("for n in range(8):\n    open(f'file-{n}.txt', 'w').write('x')")
    assert report["verdict"] == "succeeded"
    assert len(report["kept"]) == 5
    assert "file-5.txt, file-6.txt, file-7.txt" in report["logs"][0]

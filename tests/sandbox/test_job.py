"""A child is a whole process to the code that runs in it, although it was forked on the quiet."""

import pytest
from tests.sandbox.conftest import Drivers
from tests.sandbox.modes import FAST

THREADS = """
import threading
from concurrent.futures import ThreadPoolExecutor
main = threading.main_thread()
with ThreadPoolExecutor(2) as threads:
    total = sum(threads.map(int, "123"))
[
    total,
    threading.current_thread() is main,
    main.ident == threading.get_ident(),
    threading.active_count(),
]
"""
FORKS = """
import os, threading
go = threading.Event()
waiting = threading.Thread(target=go.wait, daemon=True)  # where forks are denied, it ends too
waiting.start()
pid = os.fork()
if pid == 0:
    os._exit(threading.active_count())
go.set()
waiting.join()
os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""
SURROUNDINGS = """
import gc, linecache, random, sys
[
    sys.modules["__main__"].__dict__ is globals(),
    linecache.getline("cell.py", 2).strip(),
    gc.isenabled(),
    random.random(),
]
"""


@pytest.mark.parametrize("mode", FAST)
def test_threads_are_what_they_are_in_any_process(mode: str, drivers: Drivers) -> None:
    report = drivers.of(mode).run(source=THREADS)
    assert report["verdict"] == "succeeded", report
    assert report["outputs"]["result_json"] == [6, True, True, 1]


@pytest.mark.parametrize("mode", FAST)
def test_a_job_that_forks_leaves_its_threads_behind(mode: str, drivers: Drivers) -> None:
    report = drivers.of(mode).run(source=FORKS)
    if "landlock" in mode:  # without namespaces jobs may not fork
        assert report["verdict"].startswith("SANDBOX_VIOLATION/"), report
    else:
        assert report["outputs"]["result_json"] == 1


@pytest.mark.parametrize("mode", FAST)
def test_nothing_is_left_of_what_the_zygote_rehearsed(mode: str, drivers: Drivers) -> None:
    driver = drivers.of(mode)
    first, second = (driver.run(source=SURROUNDINGS) for _ in range(2))
    *plain, chance = first["outputs"]["result_json"]
    assert plain == [True, "import gc, linecache, random, sys", True]
    assert chance != second["outputs"]["result_json"][-1]

"""One job's process, from its fork to its end.

The layers are applied first (`apply_layers`), and only then is a spec received and code run. If
anything fails before that, the child reports a setup error on its line and runs nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import json
import linecache
import os
import resource
import socket
import sys
import time
from typing import TYPE_CHECKING

from ade.sandbox.child import fork_hooks
from ade.sandbox.child.apply_layers import LENGTH, LINE, LayerSetup
from ade.sandbox.child.plan import FULL, JOB_FOLDER
from ade.sandbox.layers import linux, seccomp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import IO, Any

    from ade.sandbox.child.plan import ZygotePlan

FILES_AT_ONCE = 64
COPY_BYTES = 1 << 20
SPEC_FILE = ".spec.json"
SETUP_FAILED = 70
WARM_UP_RUNS = 16  # after so many calls Python no longer rewrites the instructions that it runs
# How many descriptors come with a request: stdout, stderr, the line, and up to two cgroups.
DESCRIPTOR_COUNTS = (3, 4, 5)
_NAME = ctypes.addressof(_name := ctypes.create_string_buffer(b"ade-job"))
_prepared: dict[Any, Any] = {}


def prepare(plan: ZygotePlan) -> None:
    """Do once, in the zygote, what is the same for every child."""
    policy = seccomp.Policy(**plan.policy_facts, listened="notify" not in plan.without)
    _prepared["filter"] = seccomp.assemble(policy)
    _set_search_path(plan.interpreter)
    if not plan.cold:
        os.dup2(2, 1)  # a pipe, like a job's stdout: a stream caches what kind of file it is on
        set_up_streams()
    if plan.level == FULL:
        _set_folders(JOB_FOLDER, "/tmp")
        for count in DESCRIPTOR_COUNTS:
            _prepared[count] = LayerSetup(plan, _prepared["filter"], JOB_FOLDER, count)


def fork(plan: ZygotePlan, number: int, descriptors: Sequence[int]) -> tuple[int, int]:
    """Fork a child, return (pid, pidfd); in the child this never returns."""
    if plan.level == FULL:
        setup = _prepared[len(descriptors)]
        fork_hooks.call("before")
        try:
            pid, pidfd = setup.fork(descriptors)
            if pid == 0:
                _live(_serve_after_hooks, plan, setup)
        finally:
            fork_hooks.call("after_in_parent")
        return pid, pidfd
    pid = os.fork()
    if pid == 0:
        _live(_serve_in_folder, plan, number, descriptors)
    return pid, os.pidfd_open(pid)


def _live(serve: Callable[..., int], *arguments: Any) -> None:
    """Run a child to its end; whatever happens, it never returns to the zygote's loop."""
    status = SETUP_FAILED
    try:
        status = serve(*arguments)
    except BaseException as error:  # of the runtime itself: the job's own errors were caught
        _send({"setup_error": f"{type(error).__name__}: {error}"[:500]})
    finally:
        os._exit(status)


def _serve_in_folder(plan: ZygotePlan, number: int, descriptors: Sequence[int]) -> int:
    """Apply the layers of a child that works in its own scratch folder, then serve."""
    folder = os.path.join(plan.scratch, str(number))
    setup = LayerSetup(plan, _prepared["filter"], folder, len(descriptors))
    setup.apply(descriptors)
    _set_folders(folder, os.path.join(folder, "tmp"))
    return _serve(plan, setup)


def _serve_after_hooks(plan: ZygotePlan, setup: LayerSetup) -> int:
    fork_hooks.call("after_in_child")
    return _serve(plan, setup)


def _serve(plan: ZygotePlan, setup: LayerSetup) -> int:
    """Report that the child is ready, wait for its spec, and run it."""
    _reseed()
    setup.report_ready()
    spec = _receive_spec()
    if spec is None:
        return 0
    _set_limits(spec["limits"], setup.data_bytes())
    if plan.cold:
        _exec_interpreter(plan, spec)
    return run(spec)


def _send(message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the supervisor may have closed the line
        os.write(LINE, json.dumps(message).encode() + b"\n")


def _receive_spec() -> dict[str, Any] | None:
    """Wait for the spec and the files that come with it; None when the line is closed instead."""
    head = _exactly(LENGTH.size)
    text = head and _exactly(*LENGTH.unpack(head))
    if not text:
        return None
    spec: dict[str, Any] = json.loads(text)
    if spec["files"]:
        _receive_files(spec["files"])
    return spec


def _exactly(size: int) -> bytes:
    data = os.read(LINE, size)
    while data and len(data) < size:
        data += (piece := os.read(LINE, size - len(data)))
        if not piece:
            return b""
    return data


def _receive_files(names: Sequence[str]) -> None:
    with socket.socket(fileno=os.dup(LINE)) as line:
        for first in range(0, len(names), FILES_AT_ONCE):
            batch = names[first : first + FILES_AT_ONCE]
            _, descriptors, _, _ = socket.recv_fds(line, 1, len(batch))
            if len(descriptors) != len(batch):
                raise ValueError("some files did not arrive")
            for name, descriptor in zip(batch, descriptors):  # noqa: B905 - strict is of 3.10
                _copy_in(name, descriptor)


def _copy_in(name: str, source: int) -> None:
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        while os.sendfile(target, source, None, COPY_BYTES):
            pass
    finally:
        os.close(target)
        os.close(source)


def _set_folders(folder: str, temporary: str) -> None:
    """Tell the job through its environment where it may write files."""
    os.makedirs(temporary, exist_ok=True)
    os.environ.update(HOME=folder, ADE_JOB_FOLDER=folder, TMPDIR=temporary, LOGNAME="job")


def _set_search_path(interpreter: str) -> None:
    """Let `python3` be the interpreter that runs the job."""
    folder = os.path.dirname(interpreter)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


def _set_limits(limits: dict[str, int], data_bytes: int) -> None:
    """Set the limits that the kernel enforces per process; the supervisor watches the tree."""
    os.setpriority(os.PRIO_PROCESS, 0, limits["nice"])
    cpu_seconds = limits["cpu_seconds"]
    # A second before the kernel kills, SIGXCPU makes the job report its stack.
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds - 1, cpu_seconds))
    for limit, most in (
        (resource.RLIMIT_DATA, limits["data_bytes"] and data_bytes + limits["data_bytes"]),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
    ):
        if most:
            resource.setrlimit(limit, (most, most))


def _exec_interpreter(plan: ZygotePlan, spec: dict[str, Any]) -> None:
    """Start the environment's interpreter afresh; the layers stay, the spec is left in a file."""
    with open(SPEC_FILE, "w", encoding="utf-8") as file:
        json.dump(spec, file)
    script = os.path.join(plan.source, "ade", "sandbox", "child", "cold_start.py")
    argv = [plan.interpreter, "-s", "-B", script, plan.source, *plan.paths]
    os.execve(plan.interpreter, argv, os.environ)


def run(spec: dict[str, Any]) -> int:
    """Run the spec's entry; return the exit status."""
    from ade_engine.channel import ArtifactLimits
    from ade_engine.run_entry import run_entry

    sys.argv[:] = [""]  # the plan is of no interest to the job
    os.set_inheritable(LINE, False)
    linux.prctl(linux.PR_SET_NAME, _NAME)
    gc.enable()
    os.write(LINE, b'{"begun": true}\n')  # what follows on the line comes from the job's code
    limits = spec["limits"]
    kept = ArtifactLimits(limits["artifacts"], limits["artifact_bytes"])
    return run_entry(spec["entry"], spec["inputs"], _prepared["line"], kept)


def warm_up() -> None:
    """Run an empty cell in the zygote, so that no child has to do what happens only once.

    Every type, name and instruction is written to when it is first used, and a child that writes to
    a page copies it first.
    """
    from ade_engine.channel import Channel
    from ade_engine.entry import cell
    from ade_engine.run_entry import run_entry
    from ade_engine.stack_dump import STACK_DUMP_SIGNAL

    main = sys.modules["__main__"]
    for _ in range(WARM_UP_RUNS):
        _reseed()
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            run_entry(cell.__name__, json.loads(json.dumps(cell.cell_inputs("None"))), nowhere)
            cell.rehearse_end(Channel(nowhere))
    sys.modules["__main__"] = main
    linecache.cache.pop(cell.FILE, None)
    faulthandler.unregister(STACK_DUMP_SIGNAL)


def set_up_streams() -> None:
    """Open the streams that a job's code finds."""
    for name, descriptor, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        stream = _stream(descriptor, mode)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    _prepared["line"] = os.fdopen(LINE, "w", encoding="utf-8", closefd=False)
    time.tzset()


def _stream(descriptor: int, mode: str) -> IO[Any]:
    """Return a stream that flushes each line, and escapes characters that cannot be encoded."""
    return open(descriptor, mode, 1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _reseed() -> None:
    """Seed the random generators that the zygote's children would otherwise share."""
    import random

    random.seed()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed(int.from_bytes(os.urandom(4), "little"))

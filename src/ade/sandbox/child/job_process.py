"""One job's process, from its fork to its end.

First its layers (`setup`), then, and not before, an order to run somebody's code. Whatever fails
on the way is said on the line as a setup error, and nothing is run.
"""

import contextlib
import ctypes
import faulthandler
import gc
import json
import linecache
import os
import resource
import signal
import socket
import sys
import time

from ade.sandbox.child import fork_hooks
from ade.sandbox.child.apply_layers import LENGTH, LINE, LayerSetup
from ade.sandbox.child.plan import FULL, JOB_FOLDER
from ade.sandbox.layers import linux, seccomp

FILES_AT_ONCE = 64
COPY_BYTES = 1 << 20
REHEARSALS = 16  # after so many calls Python no longer rewrites what it runs
GIVEN = (3, 4, 5)  # stdout, stderr, the line; and the ways into two groups, where there are any
_NAME = ctypes.addressof(_name := ctypes.create_string_buffer(b"ade-job"))
_prepared: dict = {}


def prepare(plan):
    """Do once, in the zygote, what is the same for every child."""
    policy = seccomp.Policy(**plan.policy_facts, listened="notify" not in plan.without)
    _prepared["filter"] = seccomp.assemble(policy)
    if not plan.cold:
        os.dup2(2, 1)  # a pipe, as a job's is: a stream remembers what kind of file it is made of
        furnish()
    if plan.level == FULL:
        _settle(JOB_FOLDER, "/tmp")
        for given in GIVEN:
            _prepared[given] = LayerSetup(plan, _prepared["filter"], JOB_FOLDER, given)


def fork(plan, number, descriptors):
    """Fork a child, return (pid, pidfd); the child lives to its end and never returns."""
    if plan.level == FULL:
        setup = _prepared[len(descriptors)]
        fork_hooks.tell("before")
        try:
            pid, pidfd = setup.fork(descriptors)
            if pid == 0:
                _live(_tell_and_obey, plan, setup)
        finally:
            fork_hooks.tell("after_in_parent")
        return pid, pidfd
    pid = os.fork()
    if pid == 0:
        _live(_put_up_and_obey, plan, number, descriptors)
    return pid, os.pidfd_open(pid)


def _live(life, *facts):
    """Be a child to its end, whatever happens: nothing of it returns to the zygote's loop."""
    status = 70
    try:
        status = life(*facts)
    except BaseException as error:  # of the runtime itself: the job's own were caught
        _say({"setup_error": f"{type(error).__name__}: {error}"[:500]})
    finally:
        os._exit(status)


def _put_up_and_obey(plan, number, descriptors):
    folder = os.path.join(plan.scratch, str(number))
    setup = LayerSetup(plan, _prepared["filter"], folder, len(descriptors))
    setup.make(descriptors)
    _settle(folder, os.path.join(folder, "tmp"))
    return _obey(plan, setup)


def _tell_and_obey(plan, setup):
    fork_hooks.tell("after_in_child")
    return _obey(plan, setup)


def _obey(plan, setup):
    _renew_chance()
    setup.say_ready()
    spec = _receive_spec()
    if spec is None:
        return 0
    _limit(spec["limits"], setup.data_bytes())
    if plan.cold:
        _become_another_interpreter(plan, spec)
    return run(spec)


def _say(words):
    with contextlib.suppress(OSError):  # nobody may be listening any more
        os.write(LINE, json.dumps(words).encode() + b"\n")


def _receive_spec():
    """Wait for the order and the files that come with it; None when there is none to come."""
    head = _exactly(LENGTH.size)
    text = head and _exactly(*LENGTH.unpack(head))
    if not text:
        return None
    spec = json.loads(text)
    if spec["files"]:
        _receive_files(spec["files"])
    return spec


def _exactly(size):
    data = os.read(LINE, size)
    while data and len(data) < size:
        data += (piece := os.read(LINE, size - len(data)))
        if not piece:
            return b""
    return data


def _receive_files(names):
    with socket.socket(fileno=os.dup(LINE)) as line:
        for first in range(0, len(names), FILES_AT_ONCE):
            batch = names[first : first + FILES_AT_ONCE]
            _, descriptors, _, _ = socket.recv_fds(line, 1, len(batch))
            for name, descriptor in zip(batch, descriptors, strict=True):
                _copy_in(name, descriptor)


def _copy_in(name, source):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        while os.sendfile(target, source, None, COPY_BYTES):
            pass
    finally:
        os.close(target)
        os.close(source)


def _settle(folder, temporary):
    """Say where a job may put its files."""
    os.makedirs(temporary, exist_ok=True)
    os.environ.update(HOME=folder, ADE_JOB_FOLDER=folder, TMPDIR=temporary)


def _limit(limits, data_bytes):
    """Bound what the kernel can bound for one process; the supervisor watches the whole tree."""
    os.setpriority(os.PRIO_PROCESS, 0, limits["nice"])
    cpu_seconds = limits["cpu_seconds"]
    # A second before the kernel kills it asks where the code is (`ade_engine.stack_dump`).
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds - 1, cpu_seconds))
    for what, most in (
        (resource.RLIMIT_DATA, limits["data_bytes"] and data_bytes + limits["data_bytes"]),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
    ):
        if most:
            resource.setrlimit(what, (most, most))


def _become_another_interpreter(plan, spec):
    """Start the environment's own interpreter afresh; the layers stay, the order goes along."""
    with open(".spec.json", "w", encoding="utf-8") as file:
        json.dump(spec, file)
    script = os.path.join(plan.source, "ade", "sandbox", "child", "cold_start.py")
    argv = [plan.interpreter, "-I", "-B", script, plan.source, *plan.paths]
    os.execve(plan.interpreter, argv, os.environ)


def run(spec):
    """Run the order's entry; return the exit status."""
    from ade_engine.run_entry import run_entry

    os.set_inheritable(LINE, False)
    linux.prctl(linux.PR_SET_NAME, _NAME)
    gc.enable()
    os.write(LINE, b'{"begun": true}\n')  # from here on it is the job that speaks
    return run_entry(spec["entry"], spec["inputs"], _prepared["line"])


def rehearse():
    """Go the way of a job in the zygote: what is looked up and settled here, no child does again.

    Every type, name and instruction that is used for the first time is written to, and a child
    that writes to a page copies it first.
    """
    from ade_engine.entry import cell
    from ade_engine.run_entry import run_entry
    from ade_engine.stack_dump import STACK_DUMP_SIGNAL

    main = sys.modules["__main__"]
    for _ in range(REHEARSALS):
        _renew_chance()
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            run_entry(cell.__name__, json.loads(json.dumps(cell.cell_inputs("None"))), nowhere)
    sys.modules["__main__"] = main
    linecache.cache.pop(cell.FILE, None)
    faulthandler.unregister(STACK_DUMP_SIGNAL)


def furnish():
    """Make ready, once, what somebody's code finds: streams of its own, an end when asked to."""
    for name, descriptor, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        stream = _stream(descriptor, mode)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    _prepared["line"] = os.fdopen(LINE, "w", encoding="utf-8", closefd=False)
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(128 + number))
    time.tzset()


def _stream(descriptor, mode):
    """Return a stream that shows each line at once, and does not fail on odd characters."""
    return open(descriptor, mode, 1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _renew_chance():
    """Seed what the zygote's children would otherwise share."""
    import random

    random.seed()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed(int.from_bytes(os.urandom(4), "little"))

"""Processes: too many, too long, those of others, and those that stay."""

from tests.sandbox.hostile.snippet import (
    BY_SIGNAL,
    CPU,
    DENIED,
    FULL,
    NO_HARM,
    OK,
    OPEN_FILES,
    PROCESSES,
    RAISED,
    TIMED_OUT,
    Snippet,
)

SHORT = {"timeout_ms": 500}
BURN = {"cpu_ms": 300}
NOT_THERE = RAISED  # behind a pid namespace the process does not exist

SNIPPETS = [
    Snippet(
        "fork_bomb",
        """
for _ in range(100):
    if os.fork() == 0:
        time.sleep(5)
        os._exit(0)
"harm"
""",
        PROCESSES,
        at_landlock=DENIED,
    ),
    Snippet(
        "forking_for_ever",
        """
import threading
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
        (CPU, TIMED_OUT),
        at_landlock=(CPU, TIMED_OUT),
        limits={"cpu_ms": 500, "timeout_ms": 1500},
        control="it would take the machine down",
        slow=True,
    ),
    Snippet(
        "thread_bomb",
        """
import threading
threading.stack_size(64 * 1024)
for _ in range(400):
    threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
time.sleep(patience)
"harm"
""",
        PROCESSES,
    ),
    Snippet("sleeping", "time.sleep(1); 'harm'", TIMED_OUT, limits=SHORT),
    Snippet(
        "stopping_itself",
        """
os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(2)
"harm"
""",
        TIMED_OUT,
        limits=SHORT,
        control="a process that stops itself is not woken",
    ),
    Snippet(
        "ignoring_signals",
        """
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    try:
        signal.signal(number, signal.SIG_IGN)
    except OSError:
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
time.sleep(1.5)
"harm"
""",
        TIMED_OUT,
        limits=SHORT,
    ),
    Snippet(
        "handling_the_stop",
        """
signal.signal(signal.SIGTERM, lambda *_: None)
until = time.monotonic() + 1.5
while time.monotonic() < until:
    time.sleep(0.01)
"harm"
""",
        TIMED_OUT,
        limits=SHORT,
    ),
    # --- CPU ------------------------------------------------------------------------------------
    Snippet(
        "cpu",
        """
until = time.process_time() + 1
while time.process_time() < until:
    pass
"harm"
""",
        CPU,
        limits=BURN,
    ),
    Snippet(
        "cpu_in_c",
        """
found = sum(range(1 << 62))
"harm"
""",
        CPU,
        limits=BURN,
        control="it would not end",
    ),
    Snippet(
        "cpu_of_threads",
        """
import hashlib, threading
def burn():
    for _ in range(1000):
        hashlib.sha256(bytes(1 << 20)).digest()
threads = [threading.Thread(target=burn) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"harm"
""",
        CPU,
        limits=BURN,
    ),
    Snippet(
        "cpu_of_children",
        """
for _ in range(3):
    if os.fork() == 0:
        until = time.process_time() + 0.5
        while time.process_time() < until:
            pass
        os._exit(0)
for _ in range(3):
    os.wait()
"harm"
""",
        CPU,
        at_landlock=DENIED,
        limits={"cpu_ms": 500},
    ),
    Snippet(
        "cpu_of_forgotten_children",
        """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel then forgets their time
for _ in range(20):
    if os.fork() == 0:
        until = time.process_time() + 0.1
        while time.process_time() < until:
            pass
        os._exit(0)
    try:
        os.wait()
    except ChildProcessError:
        pass
"harm"
""",
        CPU,
        at_landlock=DENIED,
        limits={"cpu_ms": 500},
        slow=True,
        seconds_max=5,
    ),
    Snippet(
        "niceness_back",
        """
os.setpriority(os.PRIO_PROCESS, 0, -5)
"harm"
""",
    ),
    Snippet(
        "real_time_priority",
        """
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
"harm"
""",
        refused="sched_setscheduler",
    ),
    Snippet(
        "limits_raised",
        """
import resource
endless = resource.RLIM_INFINITY
for limit in (resource.RLIMIT_CPU, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE):
    try:
        resource.setrlimit(limit, (endless, endless))
    except (ValueError, OSError):
        pass
found = [resource.getrlimit(l)[0] for l in (resource.RLIMIT_CPU, resource.RLIMIT_DATA)]
"harm" if endless in found else "bounded"
""",
        OK,
        value="bounded",
    ),
    # --- others' processes ----------------------------------------------------------------------
    Snippet(
        "kill_another",
        """
os.kill(victim_pid, signal.SIGKILL)
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "stop_another",
        """
os.kill(victim_pid, signal.SIGSTOP)
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "kill_the_worker",
        """
os.kill(worker_pid, 0)
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "kill_the_parent",
        """
if os.getppid() == 0:
    raise ProcessLookupError("there is no parent")
os.kill(os.getppid(), 0)
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "kill_another_job",
        """
os.kill(companion_pid, signal.SIGKILL)
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
        companion=True,
    ),
    Snippet(
        "kill_everybody",
        """
os.kill(-1, signal.SIGKILL)
"reached"
""",
        NOT_THERE,
        at_landlock=DENIED,
        companion=True,
        control="it would kill the tests",
    ),
    Snippet(
        "kill_by_pidfd",
        """
opened = os.pidfd_open(victim_pid)
signal.pidfd_send_signal(opened, signal.SIGKILL)
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "signal_by_a_file",
        """
import fcntl
one, other = socket.socketpair()
fcntl.fcntl(one, fcntl.F_SETOWN, victim_pid)
fcntl.fcntl(one, 10, signal.SIGKILL)  # F_SETSIG
fcntl.fcntl(one, fcntl.F_SETFL, fcntl.fcntl(one, fcntl.F_GETFL) | os.O_ASYNC)
other.send(b"x")
time.sleep(0.05)
""",
        (OK, NOT_THERE),
        at_landlock=DENIED,
    ),
    Snippet(
        "limits_of_another",
        """
import resource
resource.prlimit(victim_pid, resource.RLIMIT_NOFILE, (10, 10))
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "limits_of_the_zygote",
        """
import resource
if os.getppid() == 0:
    raise ProcessLookupError("there is no parent")
resource.prlimit(os.getppid(), resource.RLIMIT_CORE, (0, 0))
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "niceness_of_another",
        """
os.setpriority(os.PRIO_PROCESS, victim_pid, 19)
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "niceness_of_the_user",
        """
os.setpriority(os.PRIO_USER, 0, 19)
"done"
""",
        OK,
        at_landlock=DENIED,
        control="it would slow down everything of the user's",
    ),
    Snippet(
        "processors_of_another",
        """
os.sched_setaffinity(victim_pid, {min(os.sched_getaffinity(0))})
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    *(
        Snippet(name, f"{attempt}\n'harm'", NOT_THERE, at_landlock=DENIED)
        for name, attempt in {
            "group_of_another": "os.getpgid(victim_pid)",
            "session_of_another": "os.getsid(victim_pid)",
            "pidfd_of_another": "os.pidfd_open(victim_pid)",
            "priority_of_another": "os.getpriority(os.PRIO_PROCESS, victim_pid)",
            "processors_seen_of_another": "os.sched_getaffinity(victim_pid)",
            "scheduler_of_another": "os.sched_getscheduler(victim_pid)",
            "capabilities_of_another": """
head = (ctypes.c_uint * 2)(0x20080522, victim_pid)
call("capget", head, (ctypes.c_uint * 6)())
""",
            "time_of_another": """
call("clock_gettime", (~victim_pid << 3) | 2, (ctypes.c_long * 2)())
""",
        }.items()
    ),
    Snippet(
        "ptrace",
        """
call("ptrace", 16, victim_pid, 0, 0)
call("ptrace", 17, victim_pid, 0, 0)
"harm"
""",
        refused="ptrace",
    ),
    Snippet(
        "read_anothers_memory",
        """
class Part(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("size", ctypes.c_size_t)]
room = ctypes.create_string_buffer(8)
here, there = Part(ctypes.addressof(room), 8), Part(0x1000, 8)
try:
    call("process_vm_readv", worker_pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
except OSError as error:
    if error.errno != errno.EFAULT:  # it was let in, and found nothing at that place
        raise
"harm"
""",
        refused="process_vm_readv",
    ),
    Snippet(
        "descriptor_of_another",
        """
call("pidfd_getfd", os.pidfd_open(victim_pid), 0, 0)
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "namespace_of_another",
        """
opened = os.open(f"/proc/{worker_pid}/ns/uts", os.O_RDONLY)
call("setns", opened, 0)
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "namespaces_of_another_job",
        """
own = {name: os.readlink("/proc/self/ns/" + name) for name in companion_namespaces}
shared = [name for name in own if own[name] == companion_namespaces[name]]
"harm" if shared else "apart"
""",
        OK,
        value="apart",
        companion=True,
        only=FULL,
    ),
    # --- privileges -----------------------------------------------------------------------------
    Snippet("setuid", "os.setuid(0); 'harm'", refused="setuid"),
    Snippet("setgid", "os.setgid(0); 'harm'", refused="setgid"),
    Snippet("setresuid", "os.setresuid(0, 0, 0); 'harm'", refused="setresuid"),
    Snippet("setgroups", "os.setgroups([0]); 'harm'", refused="setgroups"),
    Snippet(
        "capabilities",
        """
facts = dict(line.split(":\\t") for line in open("/proc/self/status") if ":\\t" in line)
held = [name for name in ("CapInh", "CapPrm", "CapEff", "CapAmb") if int(facts[name], 16)]
"harm" if held or facts["NoNewPrivs"].strip() != "1" else "none"
""",
        OK,
        value="none",
    ),
    Snippet(
        "capset",
        """
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
"harm"
""",
        refused="capset",
    ),
    Snippet("unshare_user", "call('unshare', 0x10000000); 'harm'", refused="unshare"),
    Snippet("unshare_mounts", "call('unshare', 0x00020000); 'harm'", refused="unshare"),
    Snippet(
        "clone_into_namespaces",
        """
pid = call("clone", 0x10000000 | 0x20000000 | 17, 0, 0, 0, 0)
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
"harm"
""",
        refused="clone",
    ),
    Snippet(
        "clone3_into_namespaces",
        """
import struct
wanted = ctypes.create_string_buffer(struct.pack("8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0))
pid = call("clone3", wanted, 64)
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
"harm"
""",
        DENIED,
    ),
    Snippet(
        "prctl_subreaper",
        """
if libc.prctl(36, 1, 0, 0, 0):
    raise OSError(ctypes.get_errno(), "prctl")
"harm"
""",
        refused="prctl",
    ),
    Snippet(
        "prctl_own_filter",
        """
if libc.prctl(22, 1, 0, 0, 0):
    raise OSError(ctypes.get_errno(), "prctl")
"harm"
""",
        refused="prctl",
        control="strict mode ends the process",
    ),
    Snippet(
        "terminal_input",
        """
import fcntl
fcntl.ioctl(0, 0x5412, b"x")
"harm"
""",
        refused="ioctl",
        control="there is no terminal",
    ),
    # --- what stays -----------------------------------------------------------------------------
    Snippet(
        "daemon",
        """
import subprocess
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv("/bin/sh", ["/bin/sh", "-c", "sleep 30", token])
    os._exit(0)
os.wait()
time.sleep(0.1)
"started"
""",
        OK,
        at_landlock=DENIED,
    ),
    Snippet(
        "daemon_that_holds_the_pipes",
        """
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)
"started"
""",
        OK,
        at_landlock=DENIED,
        control=NO_HARM,
        seconds_max=1.0,
    ),
    Snippet(
        "threads_at_the_end",
        """
import threading
def forever():
    while True:
        time.sleep(0.1)
[threading.Thread(target=forever).start() for _ in range(5)]
"returned"
""",
        TIMED_OUT,  # Python waits for them
        limits=SHORT,
        control=NO_HARM,
    ),
    Snippet(
        "daemon_threads_at_the_end",
        """
import threading
def forever():
    while True:
        time.sleep(0.1)
[threading.Thread(target=forever, daemon=True).start() for _ in range(5)]
"returned"
""",
        OK,
        value="returned",
        control=NO_HARM,
        seconds_max=1.0,
    ),
    Snippet(
        "descriptors",
        """
kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(300)]
"harm"
""",
        OPEN_FILES,
    ),
    Snippet(
        "a_program",
        """
import subprocess
done = subprocess.run(["/bin/sh", "-c", f"cat {outside}/secret"], capture_output=True, text=True)
"harm" if "ade-secret" in done.stdout else "nothing"
""",
        OK,
        at_landlock=DENIED,
        value="nothing",
    ),
    # --- crashes --------------------------------------------------------------------------------
    Snippet("segfault", "ctypes.string_at(8)", BY_SIGNAL, control=NO_HARM),
    Snippet("abort", "os.abort()", BY_SIGNAL, control=NO_HARM),
    Snippet(
        "illegal_instruction",
        "os.kill(os.getpid(), signal.SIGILL); ctypes.string_at(8)",
        BY_SIGNAL,
        control=NO_HARM,
    ),
    Snippet(
        "killing_itself",
        "os.kill(os.getpid(), signal.SIGKILL); 'still here'",
        (OK, BY_SIGNAL, "RESOURCE_LIMIT/KILLED_BY_OS"),
        control=NO_HARM,
    ),
    Snippet(
        "interrupting_itself",
        "signal.raise_signal(signal.SIGINT); time.sleep(0.01); 'still here'",
        (OK, RAISED, BY_SIGNAL),
        control=NO_HARM,
    ),
    Snippet(
        "terminating_itself",
        "signal.raise_signal(signal.SIGTERM); 'still here'",
        (OK, BY_SIGNAL),  # the kernel ignores it for the first process of a namespace
        control=NO_HARM,
    ),
]

# ruff: noqa: E501 - snippets are as long as they are
"""System calls that no job needs: each is refused by name, whatever its arguments.

A snippet counts as harm when the kernel looked at the arguments at all; they are chosen so that
nothing comes of it even then.
"""

from tests.sandbox.hostile.snippet import DENIED, Snippet

BLIND = """
try:
    {call}
except OSError as error:
    if error.errno in (errno.EPERM, errno.ENOSYS, errno.EACCES):
        raise
"harm"
"""
NOT_EVERYWHERE = "not every kernel, or not every root, may do that"


def _refused(name: str, arguments: str = "0, 0, 0, 0, 0", control: str = "") -> Snippet:
    source = BLIND.format(call=f'call("{name}", {arguments})')
    return Snippet(f"call_{name}", source, DENIED, refused=name, control=control)


SNIPPETS = [
    Snippet(
        "mount",
        """
os.mkdir("here")
if libc.mount(b"none", b"here", b"tmpfs", 0, None):
    raise OSError(ctypes.get_errno(), "mount")
libc.umount2(b"here", 2)
"harm"
""",
        refused="mount",
    ),
    _refused("umount2", "ctypes.c_char_p(b'/nowhere'), 0"),
    _refused("pivot_root", "ctypes.c_char_p(b'/nowhere'), ctypes.c_char_p(b'/nowhere')"),
    _refused("open_tree", "-100, ctypes.c_char_p(b'/'), 1"),
    _refused("move_mount", "-1, ctypes.c_char_p(b''), -1, ctypes.c_char_p(b''), 4"),
    _refused("fsopen", "ctypes.c_char_p(b'tmpfs'), 0"),
    _refused("mount_setattr", "-1, ctypes.c_char_p(b''), 0x1000, 0, 0"),
    _refused("keyctl", "0, -1, 0"),
    _refused(
        "add_key",
        "ctypes.c_char_p(b'user'), ctypes.c_char_p(b'ade'), ctypes.c_char_p(b'x'), 1, -1",
    ),
    _refused("request_key", "ctypes.c_char_p(b'user'), ctypes.c_char_p(b'ade'), 0, 0"),
    _refused("bpf", "0, 0, 0"),
    _refused("perf_event_open", "0, 0, -1, -1, 0"),
    _refused("userfaultfd", "1", NOT_EVERYWHERE),
    _refused("io_uring_setup", "1, 0", NOT_EVERYWHERE),
    _refused("fanotify_init", "0, 0", NOT_EVERYWHERE),
    _refused("init_module", "0, 0, ctypes.c_char_p(b'')", NOT_EVERYWHERE),
    _refused("finit_module", "-1, ctypes.c_char_p(b''), 0", NOT_EVERYWHERE),
    _refused("delete_module", "ctypes.c_char_p(b'ade-no-such'), 0x800", NOT_EVERYWHERE),
    _refused("kexec_load", "0, 0, 0, 0xFFFF", NOT_EVERYWHERE),
    _refused("reboot", "0, 0, 0"),
    _refused("swapon", "ctypes.c_char_p(b'/nowhere'), 0"),
    _refused("acct", "ctypes.c_char_p(b'/nowhere')", NOT_EVERYWHERE),
    _refused("quotactl", "0, 0, 0, 0", NOT_EVERYWHERE),
    _refused("clock_settime", "99, 0", NOT_EVERYWHERE),
    _refused("settimeofday", "1, 1", "the clock is everybody's"),
    _refused("syslog", "10, 0, 0", NOT_EVERYWHERE),
    _refused("sethostname", "ctypes.c_char_p(b'x'), -1"),
    _refused("setdomainname", "ctypes.c_char_p(b'x'), -1"),
    _refused("kcmp", "os.getpid(), os.getpid(), 0, 0, 0", NOT_EVERYWHERE),
    _refused("seccomp", "2, 0, ctypes.byref(ctypes.c_uint32(0))"),
    _refused("personality", "0x0040000"),
    Snippet(
        "call_of_the_future",
        """
calls["of_the_future"] = 4000
call("of_the_future")
"harm"
""",
        DENIED,
        control="it does not exist",
    ),
    Snippet(
        "landlock_calls",
        """
call("landlock_create_ruleset", 0, 0, 1)
"harm"
""",
        DENIED,
        control=NOT_EVERYWHERE,
    ),
    Snippet(
        "own_seccomp_listener",
        """
call("seccomp", 1, 8, 0)
"harm"
""",
        refused="seccomp",
        control="without a filter there is nothing to put up",
    ),
    # --- what other processes would find --------------------------------------------------------
    Snippet(
        "shared_memory_left",
        """
kept = call("shmget", ipc_key, 4096, 0o1666)
"left"
""",
        refused="shmget",
    ),
    Snippet(
        "semaphores_left",
        """
kept = call("semget", ipc_key, 1, 0o1666)
"left"
""",
        refused="semget",
    ),
    Snippet(
        "queue_left",
        """
kept = call("msgget", ipc_key, 0o1666)
"left"
""",
        refused="msgget",
    ),
    Snippet(
        "posix_queue_left",
        """
class Shape(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("flags", "most", "size", "now")] + [("r", ctypes.c_long * 4)]
call("mq_open", ctypes.c_char_p(token.encode()), os.O_CREAT | os.O_RDWR, 0o600, ctypes.byref(Shape(0, 1, 8, 0)))
libc.mq_unlink(b"/" + token.encode())
"harm"
""",
        refused="mq_open",
    ),
    Snippet(
        "posix_shared_memory_left",
        """
from _posixshmem import shm_open
shm_open("/" + token, os.O_CREAT | os.O_RDWR, 0o600)
"left"
""",
        "succeeded",
        at_landlock=DENIED,
    ),
    Snippet(
        "file_left_in_tmp",
        """
open("/tmp/" + token, "w").write("x")
"left"
""",
        "succeeded",
        at_landlock=DENIED,
    ),
]

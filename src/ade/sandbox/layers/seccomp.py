"""The seccomp filter: which system calls a job may make.

A call that is not named here fails with ENOSYS, so that new calls of newer kernels stay closed. The
calls that a job might try on purpose are REPORTED: the supervisor is notified through the filter's
listener and always denies them, and never decides by reading a job's memory, which the job could
change meanwhile. When the listener is closed, those calls fail with ENOSYS too.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ade.sandbox.layers import linux
from ade.sandbox.layers.syscall_numbers import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ade.sandbox.layers.syscall_list import SyscallList

    Instruction = tuple[int, int, int, int]
    Code = list[Instruction]

_X86_64, _AARCH64 = 0xC000003E, 0xC00000B7
ARCHITECTURE = _X86_64 if linux.MACHINE == "x86_64" else _AARCH64
COLUMN = 0 if linux.MACHINE == "x86_64" else 1
X32_BIT = 0x40000000

SECCOMP_SET_MODE_FILTER = 1
SECCOMP_FILTER_FLAG_NEW_LISTENER = 8
RET_ALLOW = 0x7FFF0000
RET_ERRNO = 0x00050000
RET_NOTIFY = 0x7FC00000
RET_KILL = 0x80000000

CLONE_THREAD, CLONE_FILES = 0x00010000, 0x00000400
CLONE_NAMESPACES = 0x7E020080  # every CLONE_NEW* flag
FIFO, REGULAR = 0x1000, 0x8000
FORMAT_BITS = 0xF000
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
FIOSETOWN, SIOCSPGRP = 0x8901, 0x8902
OWNER_COMMANDS = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX
# F_SETLEASE and F_NOTIFY tell what other jobs do with a shared file; F_SETPIPE_SZ enlarges a pipe
# to a mebibyte of memory that is counted nowhere.
FILE_COMMANDS_REFUSED = (1024, 1026, 1031)
MAP_SHARED, MAP_ANONYMOUS = 0x01, 0x20  # MAP_SHARED_VALIDATE has the bit of MAP_SHARED too
CLOSE_RANGE_UNSHARE = 2
SOL_SOCKET, BUFFER_SIZES = 1, (7, 8)  # SO_SNDBUF, SO_RCVBUF
NEGATIVE = 0x80000000
DONE_NOTHING = RET_ERRNO  # the call returns 0 and has no effect
# The options of prctl that a job may use: reading facts, setting names, giving up rights.
PRCTL_ALLOWED = (3, 7, 14, 15, 16, 21, 23, 27, 30, 38, 39, 41, 42, 0x53564D41)
PRCTL_SET_PDEATHSIG = 1
# These return a pidfd of the process at the other end of a socket: a handle of the worker.
SO_PASSPIDFD, SO_PEERPIDFD = 76, 77
NO_OPTION = RET_ERRNO | errno.ENOPROTOOPT

ALLOWED = """
    read write open openat openat2 close stat fstat lstat newfstatat statx poll ppoll lseek mmap
    mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn pread64 pwrite64 readv writev
    preadv pwritev preadv2 pwritev2 access faccessat faccessat2 pipe pipe2 select pselect6
    sched_yield mremap msync mincore madvise dup dup2 dup3 pause nanosleep clock_nanosleep
    getitimer alarm setitimer getpid sendfile recvfrom sendmsg recvmsg shutdown getsockname
    getpeername getsockopt execve execveat exit wait4 waitid uname fsync
    fdatasync truncate ftruncate getdents getdents64 getcwd chdir fchdir rename renameat renameat2
    mkdir mkdirat rmdir creat link linkat unlink unlinkat symlink symlinkat readlink readlinkat
    umask gettimeofday getrlimit setrlimit prlimit64 getrusage sysinfo times getuid
    getgid geteuid getegid getresuid getresgid getgroups getppid getpgrp getpgid getsid setpgid
    setsid capget rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack statfs fstatfs
    getpriority setpriority sched_getparam sched_getscheduler sched_get_priority_max
    sched_get_priority_min sched_rr_get_interval sched_setaffinity sched_getaffinity sched_getattr
    mlock munlock mlock2 arch_prctl gettid readahead time futex epoll_create epoll_create1
    epoll_ctl epoll_wait epoll_pwait epoll_pwait2 set_tid_address restart_syscall fadvise64
    timer_create timer_settime timer_gettime timer_getoverrun timer_delete clock_gettime
    clock_getres exit_group set_robust_list get_robust_list sync_file_range fallocate
    timerfd_create timerfd_settime timerfd_gettime signalfd signalfd4 eventfd eventfd2 getcpu
    getrandom membarrier copy_file_range rseq close_range pidfd_open getxattr lgetxattr fgetxattr
    listxattr llistxattr flistxattr
""".split()

# Calls that change a file's owner, mode, times or attributes: Landlock does not mediate them.
BY_PATH = """
    chmod fchmod fchown fchmodat fchmodat2 chown lchown fchownat utime utimes futimesat utimensat
    setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
""".split()

NETWORKING = "connect bind listen accept accept4 sendmmsg recvmmsg".split()

SIGNALS = "kill tgkill rt_sigqueueinfo rt_tgsigqueueinfo tkill pidfd_send_signal".split()

FORKS = "fork vfork".split()

# Calls whose first argument is a pid, for a job that shares its pid namespace with others.
CHANGES_A_PROCESS = "prlimit64 sched_setaffinity".split()
OF_A_PROCESS = [
    *CHANGES_A_PROCESS,
    *"getpgid getsid setpgid pidfd_open sched_getparam sched_getscheduler".split(),
    *"sched_getattr sched_rr_get_interval get_robust_list".split(),
]

CLOCKS = "clock_gettime clock_getres clock_nanosleep timer_create".split()

REPORTED = """
    ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd mount umount2
    pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr setns
    unshare setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid
    sethostname setdomainname keyctl add_key request_key bpf perf_event_open userfaultfd
    io_uring_setup io_uring_enter io_uring_register name_to_handle_at open_by_handle_at
    fanotify_init init_module finit_module delete_module kexec_load kexec_file_load reboot swapon
    swapoff acct quotactl iopl ioperm settimeofday clock_settime clock_adjtime adjtimex syslog
    vhangup shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl
    mq_open mq_unlink capset seccomp memfd_secret sched_setscheduler sched_setparam sched_setattr
    ioprio_set
""".split()

# Only for the zygote, which applies the layers of its jobs.
OWN_LAYERS = """
    capset seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self
""".split()
LAYER_SETUP = [*OWN_LAYERS, *"mount umount2 open_tree move_mount sethostname".split()]


@dataclass(frozen=True)
class Policy:
    """Hold what differs between filters; a `zygote` may apply layers, and has no listener.

    Without `namespaces` it creates none, mounts nothing, and sees every process of its user.
    """

    zygote: bool = False
    namespaces: bool = True
    forks: bool = True
    network: bool = False
    memory_group: bool = False
    by_path: bool = True
    listened: bool = True


# --- a filter is a list of instructions ----------------------------------------------------------

_LOAD, _RETURN, _JUMP = 0x20, 0x06, 0x05
_EQUAL, _AT_LEAST, _ANY_BIT, _AND = 0x15, 0x35, 0x45, 0x54
OWN_PID = 0x7A11B1DE  # a placeholder that `add_calls` replaces with the job's pid


def _load(offset: int) -> Instruction:
    return (_LOAD, 0, 0, offset)


def _argument(index: int, *, high: bool = False) -> Instruction:
    return _load(16 + 8 * index + (4 if high else 0))


def _give(action: int) -> Instruction:
    return (_RETURN, 0, 0, action)


def _one_of(values: Sequence[int], then: int, otherwise: int) -> Code:
    """Return `then` if the loaded word is one of these values, else `otherwise`."""
    code = [(_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [*code, _give(otherwise), _give(then)]


def assemble(policy: Policy) -> bytes:
    """Return the filter as the kernel takes it."""
    rules = dict(sorted(_rules(policy).items()))
    code = [
        _load(4),
        (_EQUAL, 1, 0, ARCHITECTURE),
        _give(RET_KILL),
        _load(0),
        (_AT_LEAST, 0, 1, X32_BIT),
        _give(RET_KILL),
        *_choose(list(_ranges(rules))),
    ]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def _ranges(rules: dict[int, Code]) -> list[tuple[int, Code]]:
    """Split all call numbers into ranges with the same code: [(first number, code), ...]."""
    unknown = [_give(RET_ERRNO | errno.ENOSYS)]
    ranges: list[tuple[int, Code]] = []
    last: Code | None = None
    for number in range(max(rules) + 2):
        code = rules.get(number, unknown)
        if code != last:
            ranges.append((number, code))
            last = code
    return ranges


def _choose(ranges: list[tuple[int, Code]]) -> Code:
    """Find the range of the loaded number by binary search."""
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    below, above = _choose(ranges[:middle]), _choose(ranges[middle:])
    # A conditional jump reaches 255 instructions; a plain one reaches any.
    return [(_AT_LEAST, 1, 0, ranges[middle][0]), (_JUMP, 0, 0, len(above)), *above, *below]


def _rules(policy: Policy) -> dict[int, Code]:
    """Return the code for each call number."""
    # A zygote has no listener, so for it a notified call fails with ENOSYS. Its filter must not
    # return EPERM: the stricter of two filters decides, and its children's would not be notified.
    denied = RET_NOTIFY if policy.listened else RET_ERRNO | errno.EPERM
    allow, deny = [_give(RET_ALLOW)], [_give(denied)]
    rules: dict[int, Code] = {}

    def rule(names: Iterable[str], code: Code) -> None:
        for name in names:
            if (number := NUMBERS[name][COLUMN]) is not None:
                rules[number] = code

    rule(ALLOWED, allow)
    rule(["mmap"], allow if policy.memory_group or policy.zygote else _no_shared_memory(denied))
    rule(["fcntl"], _file_commands(policy, denied))
    rule(["getsockopt"], [_argument(2), *_one_of([SO_PEERPIDFD], NO_OPTION, RET_ALLOW)])
    rule(["setsockopt"], _socket_options())
    # A lock on a file that several jobs can read is a channel between them. Libraries take ENOSYS
    # for a file system without locks.
    rule(["flock"], allow if policy.zygote else [_give(RET_ERRNO | errno.ENOSYS)])
    rule(REPORTED, deny)
    rule(BY_PATH, allow if policy.by_path else deny)
    rule(NETWORKING, allow if policy.network else deny)
    rule(["socket"], _sockets(policy, denied))
    rule(["socketpair"], _socketpairs(denied))
    rule(["sendto"], allow if policy.network else _without_address(denied))
    rule(FORKS, allow if policy.forks else deny)
    rule(["clone"], _clone(policy, denied))
    rule(SIGNALS, allow if policy.forks else deny)
    if not policy.forks:  # one process: it may signal itself and no other
        rule(SIGNALS[:4], [_argument(0), *_one_of([OWN_PID], RET_ALLOW, denied)])
        # Running as the same user, it could also change the limits and priority of others, or
        # have the kernel send them a signal when one of its pipes is read.
        rule(OF_A_PROCESS, [_argument(0), *_one_of([0, OWN_PID], RET_ALLOW, denied)])
        # The C library asks for the processors of a thread, and works without an answer.
        not_there = RET_ERRNO | errno.ENOSYS
        rule(["sched_getaffinity"], [_argument(0), *_one_of([0, OWN_PID], RET_ALLOW, not_there)])
        rule(["setpriority", "getpriority"], _own_priority(denied))
        rule(["capget"], deny)
        # A negative clock is that of a process, or of a file.
        rule(CLOCKS, [_argument(0), (_AT_LEAST, 0, 1, NEGATIVE), _give(denied), _give(RET_ALLOW)])
        # Its folder is on a disk, and allocation takes no time; libraries write zeros instead.
        rule(["fallocate"], [_give(RET_ERRNO | errno.EOPNOTSUPP)])
        # Its open files are counted, so all of its threads must have the same ones.
        shared = [(_ANY_BIT, 0, 1, CLOSE_RANGE_UNSHARE), _give(denied), _give(RET_ALLOW)]
        rule(["close_range"], [_argument(2), *shared])
    may = [*PRCTL_ALLOWED, PRCTL_SET_PDEATHSIG] if policy.forks else PRCTL_ALLOWED
    rule(["prctl"], allow if policy.zygote else [_argument(0), *_one_of(may, RET_ALLOW, denied)])
    is_in_namespace = policy.forks and policy.namespaces
    never = [TIOCSTI, TIOCLINUX] if is_in_namespace else [TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP]
    rule(["ioctl"], [_argument(1), *_one_of(never, denied, RET_ALLOW)])
    rule(["mknod"], _files_only(1, denied))
    rule(["mknodat"], _files_only(2, denied))
    rule(["personality"], [_argument(0), *_one_of([0, 0xFFFFFFFF], RET_ALLOW, denied)])
    rule(["memfd_create"], allow if policy.memory_group else [_give(RET_ERRNO | errno.ENOSYS)])
    if policy.zygote:
        rule(LAYER_SETUP if policy.namespaces else OWN_LAYERS, allow)
    if policy.zygote and not policy.namespaces:
        # Its jobs may signal themselves, so its filter allows signals; Landlock restricts them. It
        # opens the pidfds of its children, whose pids are not known yet.
        rule(CHANGES_A_PROCESS, [_argument(0), *_one_of([0], RET_ALLOW, denied)])
        rule(["setpriority"], _own_priority(denied))
        rule(["fcntl"], [_argument(1), *_one_of(OWNER_COMMANDS, denied, RET_ALLOW)])
    return rules


def _sockets(policy: Policy, denied: int) -> Code:
    if not policy.network:
        return [_give(denied)]
    # The C library reads the machine's addresses through netlink, and works without them.
    kinds = [(_LOAD, 0, 0, 24), (_AND, 0, 0, 0xF)]
    streams = _one_of([socket.SOCK_STREAM, socket.SOCK_DGRAM], RET_ALLOW, denied)
    return [
        _argument(0),
        (_EQUAL, 2, 0, socket.AF_INET),
        (_EQUAL, 1, 0, socket.AF_INET6),
        (_JUMP, 0, 0, len(kinds) + len(streams)),
        *kinds,
        *streams,
        *_one_of([socket.AF_NETLINK], RET_ERRNO | errno.EAFNOSUPPORT, denied),
    ]


def _socketpairs(denied: int) -> Code:
    """Allow stream pairs only: a datagram socket can be connected to another address later."""
    return [
        _argument(0),
        (_EQUAL, 1, 0, socket.AF_UNIX),
        _give(denied),
        _argument(1),
        (_AND, 0, 0, 0xF),
        *_one_of([socket.SOCK_STREAM, socket.SOCK_SEQPACKET], RET_ALLOW, denied),
    ]


def _without_address(denied: int) -> Code:
    return [
        _argument(4),
        (_EQUAL, 1, 0, 0),
        _give(denied),
        _argument(4, high=True),
        *_one_of([0], RET_ALLOW, denied),
    ]


def _clone(policy: Policy, denied: int) -> Code:
    if policy.zygote and policy.namespaces:
        return [_give(RET_ALLOW)]
    no_namespaces = [_argument(0), (_ANY_BIT, 0, 1, CLONE_NAMESPACES), _give(denied)]
    if policy.forks:
        return [*no_namespaces, _give(RET_ALLOW)]
    thread = [
        (_ANY_BIT, 1, 0, CLONE_THREAD),
        _give(denied),
        (_ANY_BIT, 0, 1, CLONE_FILES),
        _give(RET_ALLOW),
        _give(denied),
    ]
    return [*no_namespaces, *thread]


def _no_shared_memory(denied: int) -> Code:
    """Deny shared anonymous memory: its pages stay when no process has them mapped."""
    return [
        _argument(3),
        (_ANY_BIT, 0, 2, MAP_ANONYMOUS),
        (_ANY_BIT, 0, 1, MAP_SHARED),
        _give(denied),
        _give(RET_ALLOW),
    ]


def _file_commands(policy: Policy, denied: int) -> Code:
    if policy.zygote:
        return [_give(RET_ALLOW)]
    owners = () if policy.forks else OWNER_COMMANDS
    return [_argument(1), *_one_of([*owners, *FILE_COMMANDS_REFUSED], denied, RET_ALLOW)]


def _socket_options() -> Code:
    """Ignore requests for larger socket buffers, whose memory is counted nowhere."""
    return [
        _argument(1),
        (_EQUAL, 1, 0, SOL_SOCKET),
        _give(RET_ALLOW),
        _argument(2),
        (_EQUAL, 0, 1, SO_PASSPIDFD),
        _give(NO_OPTION),
        *_one_of(BUFFER_SIZES, DONE_NOTHING, RET_ALLOW),
    ]


def _own_priority(denied: int) -> Code:
    return [
        _argument(0),
        (_EQUAL, 1, 0, 0),
        _give(denied),
        _argument(1),
        *_one_of([0, OWN_PID], RET_ALLOW, denied),
    ]


def _files_only(index: int, denied: int) -> Code:
    kinds = [0, FIFO, REGULAR]
    return [_argument(index), (_AND, 0, 0, FORMAT_BITS), *_one_of(kinds, RET_ALLOW, denied)]


# --- installing it, and listening ----------------------------------------------------------------


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def add_calls(
    calls: SyscallList, filter_bytes: bytes, *, pid: int, listener: int | None = None
) -> None:
    """Add the call that installs the filter for the process with this pid.

    `listener` is the descriptor that denied calls are notified on; it must be the next free one.
    """
    code = filter_bytes.replace(struct.pack("I", OWN_PID), struct.pack("I", pid))
    program = _Program(len(code) // 8, code)
    flags = 0 if listener is None else SECCOMP_FILTER_FLAG_NEW_LISTENER
    calls.add("seccomp", SECCOMP_SET_MODE_FILTER, flags, program, returns=listener or 0)


_NOTIFICATION = struct.Struct("QII iI Q 6Q".replace(" ", ""))
_ANSWER = struct.Struct("=QqiI")
_RECEIVE = 0xC0002100 | _NOTIFICATION.size << 16
_SEND = 0xC0002101 | _ANSWER.size << 16
NAMES = {numbers[COLUMN]: name for name, numbers in NUMBERS.items() if numbers[COLUMN] is not None}


def refuse_next(listener: int) -> tuple[str, list[int]] | None:
    """Deny the call that waits at the listener; return its name and arguments, if there is one."""
    notification = bytearray(_NOTIFICATION.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, notification)
        number, _, _, call, _, _, *arguments = _NOTIFICATION.unpack(notification)
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(number, 0, -errno.EPERM, 0))
    except OSError:  # the process has ended meanwhile
        return None
    return NAMES.get(call, f"system call {call}"), arguments

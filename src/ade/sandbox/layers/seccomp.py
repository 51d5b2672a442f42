"""Which system calls a job may make, assembled for the kernel.

What is not named here does not exist for a job (ENOSYS), so that new calls of newer kernels stay
shut. What a job might try on purpose is REPORTED: the supervisor hears of it through the filter's
listener and always answers no; nothing is ever decided by looking at a job's memory. When nobody
listens any more, those calls do not exist either.
"""

import ctypes
import errno
import fcntl
import socket
import struct
from dataclasses import dataclass

from ade.sandbox.layers import linux
from ade.sandbox.layers.syscall_numbers import NUMBERS

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

CLONE_THREAD = 0x00010000
CLONE_NAMESPACES = 0x7E020080  # every CLONE_NEW* flag
FIFO, REGULAR = 0x1000, 0x8000
FORMAT_BITS = 0xF000
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
FIOSETOWN, SIOCSPGRP = 0x8901, 0x8902
OWNER_COMMANDS = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX
# What a process may ask of prctl: names, what it is told, and giving up more.
PRCTL_ALLOWED = (3, 7, 14, 15, 16, 21, 23, 27, 30, 38, 39, 41, 42, 0x53564D41)
PRCTL_SET_PDEATHSIG = 1

ALLOWED = """
    read write open openat openat2 close stat fstat lstat newfstatat statx poll ppoll lseek mmap
    mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn pread64 pwrite64 readv writev
    preadv pwritev preadv2 pwritev2 access faccessat faccessat2 pipe pipe2 select pselect6
    sched_yield mremap msync mincore madvise dup dup2 dup3 pause nanosleep clock_nanosleep
    getitimer alarm setitimer getpid sendfile recvfrom sendmsg recvmsg shutdown getsockname
    getpeername setsockopt getsockopt execve execveat exit wait4 waitid uname fcntl flock fsync
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

# What changes a file's owner, mode, times or attributes: Landlock does not see these.
BY_PATH = """
    chmod fchmod fchown fchmodat fchmodat2 chown lchown fchownat utime utimes futimesat utimensat
    setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
""".split()

NETWORKING = "connect bind listen accept accept4 sendmmsg recvmmsg".split()

SIGNALS = "kill tgkill rt_sigqueueinfo rt_tgsigqueueinfo tkill pidfd_send_signal".split()

FORKS = "fork vfork".split()

OF_A_PROCESS = "prlimit64 sched_setaffinity".split()

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

# Only the zygote, to put up the layers of its jobs.
BUILDING = """
    mount umount2 open_tree move_mount sethostname capset seccomp landlock_create_ruleset
    landlock_add_rule landlock_restrict_self
""".split()


@dataclass(frozen=True)
class Policy:
    """Say what differs from job to job; `zygote` may also put up layers, and is not listened to."""

    zygote: bool = False
    forks: bool = True
    network: bool = False
    memfd: bool = False
    by_path: bool = True
    listened: bool = True


# --- a filter is a list of instructions ----------------------------------------------------------

_LOAD, _RETURN, _JUMP = 0x20, 0x06, 0x05
_EQUAL, _AT_LEAST, _ANY_BIT, _AND = 0x15, 0x35, 0x45, 0x54
OWN_PID = 0x7A11B1DE  # stands for the job's own process number until that is known


def _load(offset):
    return (_LOAD, 0, 0, offset)


def _argument(index, *, high=False):
    return _load(16 + 8 * index + (4 if high else 0))


def _give(action):
    return (_RETURN, 0, 0, action)


def _one_of(values, then, otherwise):
    """Go on by whether the loaded word is one of these values."""
    code = [(_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [*code, _give(otherwise), _give(then)]


def assemble(policy):
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


def _ranges(rules):
    """Cut all numbers into ranges with the same code: [(first number, code), ...]."""
    unknown = [_give(RET_ERRNO | errno.ENOSYS)]
    cut, last = [], None
    for number in range(max(rules) + 2):
        code = rules.get(number, unknown)
        if code != last:
            cut.append((number, code))
            last = code
    return cut


def _choose(ranges):
    """Find the range of the loaded number by halving."""
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    below, above = _choose(ranges[:middle]), _choose(ranges[middle:])
    # A conditional jump reaches 255 instructions; a plain one reaches any.
    return [(_AT_LEAST, 1, 0, ranges[middle][0]), (_JUMP, 0, 0, len(above)), *above, *below]


def _rules(policy):
    """Say for each number what happens."""
    # A zygote is not listened to: for it these calls do not exist. It must not say EPERM itself,
    # because the strictest of two filters decides, and its children's would never be heard.
    denied = RET_NOTIFY if policy.listened else RET_ERRNO | errno.EPERM
    allow, deny = [_give(RET_ALLOW)], [_give(denied)]
    rules = {}

    def rule(names, code):
        for name in names:
            if (number := NUMBERS[name][COLUMN]) is not None:
                rules[number] = code

    rule(ALLOWED, allow)
    rule(REPORTED, deny)
    rule(BY_PATH, allow if policy.by_path else deny)
    rule(NETWORKING, allow if policy.network else deny)
    rule(["socket"], _sockets(policy, denied))
    rule(["socketpair"], _socketpairs(denied))
    rule(["sendto"], allow if policy.network else _without_address(denied))
    rule(FORKS, allow if policy.forks else deny)
    rule(["clone"], _clone(policy, denied))
    rule(SIGNALS, allow if policy.forks else deny)
    if not policy.forks:  # one process: it may signal itself, and nobody else
        rule(SIGNALS[:4], [_argument(0), *_one_of([OWN_PID], RET_ALLOW, denied)])
        # As its own user it could also change others' limits and priority, or have the kernel
        # send them a signal when a pipe of its own is read.
        rule(OF_A_PROCESS, [_argument(0), *_one_of([0, OWN_PID], RET_ALLOW, denied)])
        rule(["setpriority"], _own_priority(denied))
        rule(["fcntl"], [_argument(1), *_one_of(OWNER_COMMANDS, denied, RET_ALLOW)])
    may = [*PRCTL_ALLOWED, PRCTL_SET_PDEATHSIG] if policy.forks else PRCTL_ALLOWED
    rule(["prctl"], allow if policy.zygote else [_argument(0), *_one_of(may, RET_ALLOW, denied)])
    never = [TIOCSTI, TIOCLINUX] if policy.forks else [TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP]
    rule(["ioctl"], [_argument(1), *_one_of(never, denied, RET_ALLOW)])
    rule(["mknod"], _files_only(1, denied))
    rule(["mknodat"], _files_only(2, denied))
    rule(["personality"], [_argument(0), *_one_of([0, 0xFFFFFFFF], RET_ALLOW, denied)])
    rule(["memfd_create"], allow if policy.memfd else [_give(RET_ERRNO | errno.ENOSYS)])
    if policy.zygote:
        rule(BUILDING, allow)
    return rules


def _sockets(policy, denied):
    if not policy.network:
        return [_give(denied)]
    # The C library looks at the machine's addresses through netlink, and does without.
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


def _socketpairs(denied):
    """Allow connected pairs: a pair of datagram sockets can be turned to any other address."""
    return [
        _argument(0),
        (_EQUAL, 1, 0, socket.AF_UNIX),
        _give(denied),
        _argument(1),
        (_AND, 0, 0, 0xF),
        *_one_of([socket.SOCK_STREAM, socket.SOCK_SEQPACKET], RET_ALLOW, denied),
    ]


def _without_address(denied):
    return [
        _argument(4),
        (_EQUAL, 1, 0, 0),
        _give(denied),
        _argument(4, high=True),
        *_one_of([0], RET_ALLOW, denied),
    ]


def _clone(policy, denied):
    if policy.zygote:
        return [_give(RET_ALLOW)]
    no_namespaces = [_argument(0), (_ANY_BIT, 0, 1, CLONE_NAMESPACES), _give(denied)]
    if policy.forks:
        return [*no_namespaces, _give(RET_ALLOW)]
    thread = [(_ANY_BIT, 0, 1, CLONE_THREAD), _give(RET_ALLOW), _give(denied)]
    return [*no_namespaces, *thread]


def _own_priority(denied):
    return [
        _argument(0),
        (_EQUAL, 1, 0, 0),
        _give(denied),
        _argument(1),
        *_one_of([0, OWN_PID], RET_ALLOW, denied),
    ]


def _files_only(index, denied):
    kinds = [0, FIFO, REGULAR]
    return [_argument(index), (_AND, 0, 0, FORMAT_BITS), *_one_of(kinds, RET_ALLOW, denied)]


# --- putting it up, and listening ----------------------------------------------------------------


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def add_calls(calls, filter_bytes, *, pid, listener=None):
    """Write down the call that puts the filter around a process for good, known by its number.

    With `listener`, the descriptor under which refused calls can be heard of.
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


def refuse_next(listener):
    """Answer no to the call that waits at the listener; return its name and arguments, if any."""
    asked = bytearray(_NOTIFICATION.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, asked)
        number, _, _, call, _, _, *arguments = _NOTIFICATION.unpack(asked)
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(number, 0, -errno.EPERM, 0))
    except OSError:  # whoever asked has died in the meantime
        return None
    return NAMES.get(call, f"system call {call}"), arguments

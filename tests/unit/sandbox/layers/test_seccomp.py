"""The filter of system calls, run by its own interpreter for every number."""

import errno
import functools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade.sandbox.layers import seccomp
from ade.sandbox.layers.seccomp import (
    ALLOWED,
    ARCHITECTURE,
    COLUMN,
    RET_ALLOW,
    RET_ERRNO,
    RET_KILL,
    RET_NOTIFY,
    X32_BIT,
    Policy,
)
from ade.sandbox.layers.syscall_numbers import NUMBERS

JOB, ZYGOTE = Policy(), Policy(zygote=True)
ZYGOTE_ALONE = Policy(zygote=True, namespaces=False)
ALONE = Policy(forks=False, by_path=False)
POLICIES = [
    JOB,
    ALONE,
    ZYGOTE,
    ZYGOTE_ALONE,
    Policy(network=True),
    Policy(memory_group=True),
    Policy(listened=False),
]
NOT_THERE = RET_ERRNO | errno.ENOSYS
NUMBERS_MAX = 600
assemble = functools.cache(seccomp.assemble)
decoded = functools.cache(lambda code: list(struct.iter_unpack("HBBI", code)))


def run(filter_bytes: bytes, number: int, *arguments: int, machine: int = ARCHITECTURE) -> int:
    """Run a filter as the kernel does, and return what it says."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, machine, 0, *words)
    code = decoded(filter_bytes)
    held, at = 0, 0
    for _ in range(len(code)):
        operation, then, otherwise, value = code[at]
        at += 1
        if operation == 0x20:
            (held,) = struct.unpack_from("=I", data, value)
        elif operation == 0x06:
            return int(value)
        elif operation == 0x05:
            at += value
        elif operation == 0x15:
            at += then if held == value else otherwise
        elif operation == 0x35:
            at += then if held >= value else otherwise
        elif operation == 0x45:
            at += then if held & value else otherwise
        elif operation == 0x54:
            held &= value
        else:
            raise AssertionError(f"an instruction that is not known: {operation:#x}")
    raise AssertionError("the filter does not end")


def ask(policy: Policy, name: str, *arguments: int) -> int:
    """Ask a policy's filter about a call by its name."""
    number = NUMBERS[name][COLUMN]
    assert number is not None
    return run(assemble(policy), number, *arguments)


NAMED = {numbers[COLUMN] for numbers in NUMBERS.values()}


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_what_is_not_named_does_not_exist(policy: Policy) -> None:
    code = assemble(policy)
    for number in [*range(NUMBERS_MAX), 4096, X32_BIT - 1]:
        if number not in NAMED:
            assert run(code, number) == NOT_THERE, number


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_every_number_gets_a_known_answer(policy: Policy) -> None:
    code = assemble(policy)
    answers = {run(code, number) for number in range(NUMBERS_MAX)}
    errors = {NOT_THERE, RET_ERRNO | errno.EPERM, RET_ERRNO | errno.EOPNOTSUPP}
    assert answers <= {RET_ALLOW, RET_NOTIFY, *errors}


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_what_is_named_twice_is_not_opened_by_it(policy: Policy) -> None:
    code = assemble(policy)
    may = {*seccomp.LAYER_SETUP} if policy.zygote else set()
    for name in set(seccomp.REPORTED) - may:
        if (number := NUMBERS[name][COLUMN]) is not None:
            assert run(code, number) != RET_ALLOW, name


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_it_fits_into_the_kernel(policy: Policy) -> None:
    assert len(assemble(policy)) // 8 <= 4096


@given(number=st.integers(0, 0xFFFFFFFF), machine=st.integers(0, 0xFFFFFFFF))
def test_another_machines_calls_are_deadly(number: int, machine: int) -> None:
    if machine != ARCHITECTURE:
        assert run(assemble(JOB), number, machine=machine) == RET_KILL


@given(number=st.integers(X32_BIT, 0xFFFFFFFF))
def test_x32_calls_are_deadly(number: int) -> None:
    assert run(assemble(JOB), number) == RET_KILL


def test_ordinary_calls_are_allowed() -> None:
    for name in ("read", "write", "openat", "mmap", "futex", "execve", "exit_group"):
        assert ask(JOB, name) == RET_ALLOW
    assert set(ALLOWED) <= set(NUMBERS)


def test_unheard_refusals_are_plain_errors() -> None:
    assert ask(Policy(listened=False), "ptrace") == RET_ERRNO | errno.EPERM


@pytest.mark.parametrize("family", [1, 2, 10, 16, 17, 38, 40])
def test_no_socket_of_any_family(family: int) -> None:
    assert ask(JOB, "socket", family, 1, 0) == RET_NOTIFY


def test_with_a_network_only_its_sockets() -> None:
    with_network = Policy(network=True)
    non_blocking = 0o4000 | 0o2000000
    assert ask(with_network, "socket", 2, 1 | non_blocking) == RET_ALLOW
    assert ask(with_network, "socket", 10, 2) == RET_ALLOW
    assert ask(with_network, "socket", 2, 3) == RET_NOTIFY  # raw
    assert ask(with_network, "socket", 1, 1) == RET_NOTIFY
    assert ask(with_network, "socket", 17, 1) == RET_NOTIFY
    assert ask(with_network, "socket", 16, 3) == RET_ERRNO | errno.EAFNOSUPPORT


def test_pairs_that_cannot_be_turned() -> None:
    assert ask(JOB, "socketpair", 1, 1 | 0o2000000) == RET_ALLOW
    assert ask(JOB, "socketpair", 1, 5) == RET_ALLOW
    assert ask(JOB, "socketpair", 1, 2) == RET_NOTIFY  # datagrams
    assert ask(JOB, "socketpair", 2, 1) == RET_NOTIFY


@given(address=st.integers(0, (1 << 64) - 1))
def test_sending_without_an_address_only(address: int) -> None:
    answer = ask(JOB, "sendto", 0, 0, 0, 0, address)
    assert answer == (RET_NOTIFY if address else RET_ALLOW)


@given(flags=st.integers(0, (1 << 32) - 1))
def test_clone_without_namespaces(flags: int) -> None:
    has_namespaces = flags & 0x7E020080
    assert ask(JOB, "clone", flags) == (RET_NOTIFY if has_namespaces else RET_ALLOW)
    is_thread = flags & 0x00010000 and flags & 0x00000400  # one that shares its open files
    alone = RET_ALLOW if is_thread and not has_namespaces else RET_NOTIFY
    assert ask(ALONE, "clone", flags) == alone


def test_clone3_does_not_exist() -> None:
    assert run(assemble(JOB), 435) == NOT_THERE


def test_alone_there_is_no_fork_and_no_signal_to_others() -> None:
    own = seccomp.OWN_PID
    for name in ("fork", "vfork"):
        if NUMBERS[name][COLUMN] is not None:
            assert ask(ALONE, name) == RET_NOTIFY
    assert ask(ALONE, "kill", own, 9) == RET_ALLOW
    assert ask(ALONE, "kill", own + 1, 9) == RET_NOTIFY
    assert ask(ALONE, "kill", 0xFFFFFFFF, 9) == RET_NOTIFY
    assert ask(ALONE, "kill", 0, 9) == RET_NOTIFY
    assert ask(ALONE, "tkill", own, 9) == RET_NOTIFY


def test_as_the_workers_user_nothing_is_changed_by_path() -> None:
    for name in ("fchmodat", "fchownat", "utimensat", "setxattr"):
        assert ask(ALONE, name) == RET_NOTIFY
        assert ask(JOB, name) == RET_ALLOW


@pytest.mark.parametrize("name", ["mknodat"])
def test_only_files_and_pipes_are_made(name: str) -> None:
    for kind in (0, 0x1000, 0x8000):
        assert ask(JOB, name, 0, 0, kind | 0o644) == RET_ALLOW
    for kind in (0x2000, 0x6000, 0xC000):
        assert ask(JOB, name, 0, 0, kind | 0o644) == RET_NOTIFY


def test_terminals_are_not_typed_into() -> None:
    assert ask(JOB, "ioctl", 0, 0x5412) == RET_NOTIFY
    assert ask(JOB, "ioctl", 0, 0x5413) == RET_ALLOW


def test_memory_files_only_where_they_are_counted() -> None:
    assert ask(JOB, "memfd_create") == NOT_THERE
    assert ask(Policy(memory_group=True), "memfd_create") == RET_ALLOW


ANONYMOUS, SHARED, PRIVATE, SHARED_VALIDATE = 0x20, 1, 2, 3


@given(kind=st.sampled_from([PRIVATE, SHARED, SHARED_VALIDATE]), more=st.integers(0, 0xFFFF))
def test_shared_memory_only_where_it_is_counted(kind: int, more: int) -> None:
    flags = more & ~0x0F | kind
    is_refused = kind != PRIVATE and flags & ANONYMOUS
    answer = ask(JOB, "mmap", 0, 1 << 20, 3, flags, -1 & 0xFFFFFFFF)
    assert answer == (RET_NOTIFY if is_refused else RET_ALLOW)
    for policy in (Policy(memory_group=True), ZYGOTE):
        assert ask(policy, "mmap", 0, 1 << 20, 3, flags, -1 & 0xFFFFFFFF) == RET_ALLOW


@pytest.mark.parametrize("command", [1024, 1026, 1031])
def test_files_are_not_used_to_tell_or_to_hide(command: int) -> None:
    for policy in (JOB, ALONE):
        assert ask(policy, "fcntl", 5, command) == RET_NOTIFY
        assert ask(policy, "fcntl", 5, 6) == RET_ALLOW  # F_SETLK, which SQLite needs
        assert ask(policy, "flock", 5, 2) == NOT_THERE


def test_buffers_of_sockets_keep_their_size() -> None:
    for option in (7, 8):
        assert ask(JOB, "setsockopt", 5, 1, option) == RET_ERRNO  # and 0: as if it were done
    assert ask(JOB, "setsockopt", 5, 1, 9) == RET_ALLOW
    assert ask(JOB, "setsockopt", 5, 6, 7) == RET_ALLOW


def test_no_socket_tells_the_process_at_its_other_end() -> None:
    for policy in POLICIES:
        for name, option in (("getsockopt", 77), ("setsockopt", 76)):
            assert ask(policy, name, 5, 1, option) == RET_ERRNO | errno.ENOPROTOOPT
            assert ask(policy, name, 5, 1, 4) == RET_ALLOW  # SO_ERROR, SO_REUSEADDR, ...


def test_a_zygote_without_namespaces_opens_its_children_and_changes_no_process() -> None:
    other = 4321
    assert ask(ZYGOTE_ALONE, "pidfd_open", other) == RET_ALLOW
    for name in ("prlimit64", "sched_setaffinity"):
        assert ask(ZYGOTE_ALONE, name, 0) == RET_ALLOW
        assert ask(ZYGOTE_ALONE, name, other) == RET_NOTIFY
        assert ask(ZYGOTE, name, other) == RET_ALLOW


@pytest.mark.parametrize("mode", [0, 1, 3, 0x10])
def test_nothing_is_allocated_on_a_disk_without_being_written(mode: int) -> None:
    assert ask(ALONE, "fallocate", 5, mode) == RET_ERRNO | errno.EOPNOTSUPP
    assert ask(JOB, "fallocate", 5, mode) == RET_ALLOW


def test_alone_the_open_files_of_all_threads_are_the_same() -> None:
    assert ask(ALONE, "close_range", 3, 9, 2) == RET_NOTIFY
    assert ask(ALONE, "close_range", 3, 9, 4) == RET_ALLOW
    assert ask(JOB, "close_range", 3, 9, 2) == RET_ALLOW


def test_alone_nothing_is_learnt_of_other_processes() -> None:
    own = seccomp.OWN_PID
    for name in ("getpgid", "getsid", "pidfd_open", "sched_getscheduler", "sched_getattr"):
        assert [ask(ALONE, name, pid) for pid in (0, own)] == [RET_ALLOW, RET_ALLOW]
        assert ask(ALONE, name, own + 1) == RET_NOTIFY
        assert ask(JOB, name, own + 1) == RET_ALLOW
    assert ask(ALONE, "sched_getaffinity", own + 1) == NOT_THERE
    assert ask(ALONE, "getpriority", 0, own + 1) == RET_NOTIFY
    assert ask(ALONE, "getpriority", 2, 0) == RET_NOTIFY
    assert ask(ALONE, "capget") == RET_NOTIFY
    assert ask(ALONE, "clock_gettime", 2) == RET_ALLOW
    assert ask(ALONE, "clock_gettime", (~12345 << 3 | 2) & 0xFFFFFFFF) == RET_NOTIFY


def test_a_zygote_may_build_and_a_job_may_not() -> None:
    for name in ("mount", "capset", "seccomp"):
        assert ask(ZYGOTE, name) == RET_ALLOW
        assert ask(JOB, name) == RET_NOTIFY
    assert ask(ZYGOTE, "landlock_restrict_self") == RET_ALLOW
    assert ask(JOB, "landlock_restrict_self") == NOT_THERE

"""Start a program as somebody else, or with less: `python launch.py [options] -- PROGRAM...`

    --user N         become the ordinary user N
    --without NAME   drop one capability for good
    --docker         drop what Docker drops, and put up the rules of its default seccomp profile
    --group PATH     join a memory group of version 1
    --scratch PATH   mount a file system of its own at this folder

Run by root. Where the interpreter lies below a folder that other users may not enter (a home of
mode 0700), what is needed of that folder is shown to the program in a mount namespace of its own.
"""

import argparse
import os
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

from ade.sandbox.layers import linux, seccomp  # noqa: E402
from ade.sandbox.layers.syscall_list import SyscallList  # noqa: E402
from ade.sandbox.layers.syscall_numbers import NUMBERS  # noqa: E402

PR_CAPBSET_DROP = 24
CAPABILITIES = {
    "chown": 0, "dac_override": 1, "fowner": 3, "fsetid": 4, "kill": 5, "setgid": 6, "setuid": 7,
    "setpcap": 8, "net_bind_service": 10, "net_raw": 13, "sys_chroot": 18, "sys_admin": 21,
    "mknod": 27, "audit_write": 29, "setfcap": 31,
}  # fmt: skip
KEPT_BY_DOCKER = set(CAPABILITIES) - {"sys_admin"}
# What moby's default profile does not let a container without CAP_SYS_ADMIN (or another) call.
REFUSED_BY_DOCKER = """
    mount umount2 pivot_root unshare setns open_tree move_mount fsopen fsconfig fsmount fspick
    mount_setattr bpf perf_event_open fanotify_init quotactl sethostname setdomainname syslog
    keyctl add_key request_key userfaultfd io_uring_setup io_uring_enter io_uring_register
    init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct
    iopl ioperm settimeofday clock_settime open_by_handle_at vhangup
"""
EPERM, ENOSYS = 1, 38


def main() -> None:
    """Take away what the options name, then become the program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--user", type=int)
    parser.add_argument("--without", choices=CAPABILITIES, action="append", default=[])
    parser.add_argument("--docker", action="store_true")
    parser.add_argument("--group", type=Path)
    parser.add_argument("--scratch")
    parser.add_argument("program", nargs="+")
    asked = parser.parse_args()
    if asked.group is not None:
        (asked.group / "cgroup.procs").write_text("0")
    show_to_others({Path(sys.base_prefix), Path(sys.prefix), ROOT})
    if asked.scratch is not None:
        linux.unshare(linux.CLONE_NEWNS)
        linux.mount(None, "/", None, linux.MS_REC | linux.MS_PRIVATE)
        linux.mount("scratch", asked.scratch, "tmpfs", linux.MS_NOSUID, "size=2g,mode=1777")
    _drop({CAPABILITIES[name] for name in asked.without})
    if asked.docker:
        _drop(set(range(41)) - {CAPABILITIES[name] for name in KEPT_BY_DOCKER})
        calls = SyscallList()
        seccomp.add_calls(calls, docker_filter(), pid=os.getpid())
        calls.execute_all()
    if asked.user is not None:
        os.setgroups([])
        os.setresgid(asked.user, asked.user, asked.user)
        os.setresuid(asked.user, asked.user, asked.user)
    os.execv(asked.program[0], asked.program)


def _drop(capabilities: set[int]) -> None:
    for capability in capabilities:
        linux.libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails where there was none


def show_to_others(paths: set[Path]) -> None:
    """Cover each folder that only its owner may enter, and show the needed paths below it."""
    closed = {path: barrier for path in paths if (barrier := _barrier(path)) is not None}
    if not closed:
        return
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount(None, "/", None, linux.MS_REC | linux.MS_PRIVATE)
    trees = {path: linux.clone_tree(str(path)) for path in closed}
    for barrier in set(closed.values()):
        linux.mount("cover", str(barrier), "tmpfs", linux.MS_NOSUID, "size=1m,mode=755")
    for path, tree in trees.items():
        path.mkdir(parents=True, exist_ok=True)
        linux.place_tree(tree, str(path))
        os.close(tree)


def _barrier(path: Path) -> Path | None:
    """Return the outermost folder on the way that others may not enter."""
    way = [*reversed(path.parents), path]
    return next((folder for folder in way if not folder.stat().st_mode & 0o001), None)


def docker_filter() -> bytes:
    """Assemble the refusals; everything else is allowed, as Docker allows what is ordinary."""
    load, jump_equal, jump_bits, give = 0x20, 0x15, 0x45, 0x06
    refuse = (give, 0, 0, seccomp.RET_ERRNO | EPERM)
    code = [(load, 0, 0, 0)]
    for name in REFUSED_BY_DOCKER.split():
        number = NUMBERS[name][seccomp.COLUMN]
        if number is not None:
            code += [(jump_equal, 0, 1, number), refuse]
    no_clone3 = (give, 0, 0, seccomp.RET_ERRNO | ENOSYS)
    clone, clone3 = (NUMBERS[name][seccomp.COLUMN] or 0 for name in ("clone", "clone3"))
    code += [(jump_equal, 0, 1, clone3), no_clone3]
    namespaces = [(load, 0, 0, 16), (jump_bits, 0, 1, seccomp.CLONE_NAMESPACES), refuse]
    code += [(jump_equal, 0, len(namespaces), clone), *namespaces]
    code += [(give, 0, 0, seccomp.RET_ALLOW)]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


if __name__ == "__main__":
    main()

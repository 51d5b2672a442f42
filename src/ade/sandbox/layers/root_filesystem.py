"""A root file system that holds what an interpreter needs, read-only, and nothing else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ade.sandbox.layers import linux

if TYPE_CHECKING:
    from collections.abc import Iterable

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
FILES = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives", "/etc/fonts", "/etc/mime.types")
NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/services", "/etc/ssl", "/etc/pki",
                 "/etc/ca-certificates")  # fmt: skip
DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
MEMORY_DEVICE = "/dev/zero"
GENERATED = {
    "/etc/passwd": "root:x:0:0:root:/:/bin/false\n"
    "job:x:1000:1000:job:/job:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "/etc/group": "root:x:0:\njob:x:1000:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
ROOT_BYTES_MAX = 1024 * 1024
READ_ONLY = linux.MOUNT_ATTR_RDONLY | linux.MOUNT_ATTR_NOSUID
PROC_FLAGS = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
STAGE = "/tmp"  # the new root is built here: any folder will do that exists everywhere


def readable_paths(plan_readable: Iterable[str], network: bool) -> list[str]:
    """List the existing paths that sandboxed code may read, without those below another."""
    wanted = [*SYSTEM, *FILES, *(NETWORK_FILES if network else ()), *plan_readable]
    kept: list[str] = []
    for path in sorted({os.path.normpath(path) for path in wanted}):
        inside_another = any(path.startswith(f"{outer}/") for outer in kept)
        if os.path.lexists(path) and not inside_another:
            kept.append(path)
    return kept


def devices(*, memory_group: bool) -> tuple[str, ...]:
    """List the devices of a job; a shared mapping of /dev/zero is memory that a group counts."""
    return (*DEVICES, MEMORY_DEVICE) if memory_group else DEVICES


def build(
    readable: Iterable[str], network: bool, folders: Iterable[str], devices: Iterable[str]
) -> None:
    """Build the root in this mount namespace and enter it; `folders` are empty mount points.

    All trees are copied before anything is mounted, because a mount may hide the path to another
    tree. Each is made read-only recursively.
    """
    linux.mount(None, "/", None, linux.MS_REC | linux.MS_PRIVATE)
    paths = readable_paths(readable, network)
    links = {path: os.readlink(path) for path in paths if os.path.islink(path)}
    trees = {path: linux.clone_tree(path) for path in paths if path not in links}
    device_trees = {path: linux.clone_tree(path) for path in devices}
    is_folder = {path: os.path.isdir(path) for path in trees}
    linux.mount("root", STAGE, "tmpfs", linux.MS_NOSUID, f"size={ROOT_BYTES_MAX},mode=755")
    for path, target in links.items():
        _make_parents(path)
        os.symlink(target, STAGE + path)
    for path, tree in trees.items():
        linux.restrict_tree(tree, READ_ONLY | linux.MOUNT_ATTR_NODEV)
        _place(tree, path, is_folder=is_folder[path])
    for path, tree in device_trees.items():
        linux.restrict_tree(tree, linux.MOUNT_ATTR_NOSUID)
        _place(tree, path, is_folder=False)
    for path, text in GENERATED.items():
        if path in trees or path in links:  # with network access the job sees the machine's
            continue
        _make_parents(path)
        with open(STAGE + path, "w", encoding="ascii") as file:
            file.write(text)
    for path in folders:
        os.makedirs(STAGE + path, exist_ok=True)
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        os.symlink(f"/proc/self/fd/{number}", f"{STAGE}/dev/{name}")
    os.symlink("/proc/self/fd", f"{STAGE}/dev/fd")
    # While the old /proc is still visible: the kernel allows a new one only beside a full one.
    linux.mount("proc", f"{STAGE}/proc", "proc", PROC_FLAGS)
    linux.pivot_root_to(STAGE)
    linux.mount(None, "/", None, linux.MS_REMOUNT | linux.MS_RDONLY | linux.MS_NOSUID, "size=1m")


def _make_parents(path: str) -> None:
    os.makedirs(os.path.dirname(STAGE + path), exist_ok=True)


def _place(tree: int, path: str, *, is_folder: bool) -> None:
    if is_folder:
        os.makedirs(STAGE + path, exist_ok=True)
    else:
        _make_parents(path)
        with open(STAGE + path, "w", encoding="ascii"):
            pass
    linux.place_tree(tree, STAGE + path)
    os.close(tree)

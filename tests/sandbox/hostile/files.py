"""Files that are not the job's, files that mislead the collector, too many, too large."""

from tests.sandbox.hostile.snippet import (
    DENIED,
    DISK,
    FILE_SIZE,
    LANDLOCK,
    NO_HARM,
    OK,
    RAISED,
    Snippet,
)

NOT_THERE = RAISED  # behind a mount namespace the path does not exist

SNIPPETS = [
    Snippet(
        "shadow_file",
        """
os.close(os.open("/etc/shadow", os.O_RDONLY))
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "read_outside",
        """
open(outside + "/secret").read()
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "read_through_a_link",
        """
os.symlink(outside + "/secret", "innocent")
open("innocent").read()
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "read_through_dots",
        """
open("../" * 20 + outside + "/secret").read()
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "list_outside",
        """
os.listdir(outside)
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "write_outside",
        """
open(outside + "/planted", "w").write("x")
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "change_outside",
        """
open(outside + "/writable", "r+").write("x")
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "truncate_outside",
        """
os.truncate(outside + "/writable", 0)
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "delete_outside",
        """
os.unlink(outside + "/inner/file")
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "rename_outside",
        """
os.rename(outside + "/writable", outside + "/elsewhere")
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "link_from_outside",
        """
try:
    os.link(outside + "/writable", "mine")
except OSError as error:
    if error.errno == errno.EXDEV:
        raise PermissionError(errno.EACCES, "not across") from None
    raise
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "chmod_outside",
        """
os.chmod(outside + "/inner", 0o700)
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "chmod_of_what_is_readable",
        """
os.chmod(readable + "/shared.py", 0o666)
"harm"
""",
    ),
    Snippet(
        "fchmod_of_what_is_readable",
        """
opened = os.open(readable + "/shared.py", os.O_RDONLY)
os.fchmod(opened, 0o666)
"harm"
""",
    ),
    Snippet(
        "times_outside",
        """
os.utime(outside + "/writable", (1, 1))
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "times_of_what_is_readable",
        """
opened = os.open(readable + "/shared.py", os.O_RDONLY)
os.utime(opened, (1, 1))
"harm"
""",
    ),
    Snippet(
        "attributes_of_what_is_readable",
        """
os.setxattr(readable + "/shared.py", "user.ade", b"x")
"harm"
""",
    ),
    Snippet(
        "write_to_what_is_readable",
        """
open(readable + "/shared.py", "a").write("x")
"harm"
""",
    ),
    Snippet(
        "write_to_the_runtime",
        """
import ade_engine
os.close(os.open(ade_engine.__file__, os.O_WRONLY))
"harm"
""",
    ),
    Snippet(
        "folder_of_another_job",
        """
for path in (companion_folder, f"/proc/{companion_pid}/cwd", f"/proc/{companion_pid}/root/job"):
    try:
        os.listdir(path or "/nowhere")
    except OSError as error:
        last = error
    else:
        last = None
        break
if last:
    raise last
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
        companion=True,
    ),
    Snippet(
        "environ_of_others",
        """
found = "nothing"
for name in os.listdir("/proc") + [str(worker_pid), str(os.getppid()), str(victim_pid)]:
    try:
        if name != str(os.getpid()) and b"ade-secret" in open(f"/proc/{name}/environ", "rb").read():
            found = "harm"
    except OSError:
        continue
found
""",
        OK,
        at_landlock=DENIED,
        value="nothing",
    ),
    Snippet(
        "environ_of_the_worker",
        """
open(f"/proc/{worker_pid}/environ", "rb").read()
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "memory_of_the_worker",
        """
os.close(os.open(f"/proc/{worker_pid}/mem", os.O_RDONLY))
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "root_of_the_worker",
        """
os.listdir(f"/proc/{worker_pid}/root/etc")
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "command_lines_of_others",
        """
open(f"/proc/{victim_pid}/cmdline", "rb").read()
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "core_pattern",
        """
os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "sysrq",
        """
os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY))
"harm"
""",
        NOT_THERE,
        at_landlock=(DENIED, NOT_THERE),
        control="not every kernel has it",
    ),
    Snippet(
        "kernel_symbols",
        """
open("/proc/kallsyms").readline()
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
    ),
    Snippet(
        "own_memory_by_file",
        """
os.close(os.open("/proc/self/mem", os.O_RDWR))
"harm"
""",
    ),
    Snippet(
        "own_oom_score",
        """
with open("/proc/self/oom_score_adj", "w") as file:
    file.write("999")
"harm"
""",
    ),
    Snippet(
        "own_user_map",
        """
os.close(os.open("/proc/self/uid_map", os.O_WRONLY))
"harm"
""",
    ),
    Snippet(
        "cgroup",
        """
folder = "/sys/fs/cgroup/" + ("memory/" if os.path.isdir("/sys/fs/cgroup/memory") else "") + token
os.mkdir(folder)
os.rmdir(folder)
"harm"
""",
        NOT_THERE,
        at_landlock=DENIED,
        control="not every machine lets its root do that",
    ),
    Snippet(
        "block_device",
        """
import stat
os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(7, 0))
"harm"
""",
        refused="mknodat",
    ),
    Snippet(
        "character_device",
        """
import stat
os.mknod("memory", 0o600 | stat.S_IFCHR, os.makedev(1, 1))
"harm"
""",
        refused="mknodat",
    ),
    Snippet(
        "disk_of_the_machine",
        """
import glob
for path in glob.glob("/dev/vd*") + glob.glob("/dev/sd*") + glob.glob("/dev/loop*") + ["/dev/mem"]:
    os.close(os.open(path, os.O_RDONLY))
    found = "harm"
found
""",
        NOT_THERE,
        at_landlock=(DENIED, NOT_THERE),
        control="not every machine has one of these",
    ),
    Snippet(
        "handle",
        """
handle = ctypes.create_string_buffer(b"\\x80\\0\\0\\0" + bytes(140))
mount = ctypes.c_int()
folder = os.open("/usr", os.O_RDONLY)
call("name_to_handle_at", folder, ctypes.c_char_p(b""), handle, ctypes.byref(mount), 0x1000)
os.close(call("open_by_handle_at", folder, handle, os.O_RDONLY))
"harm"
""",
        refused="name_to_handle_at",
    ),
    Snippet(
        "chroot",
        """
os.mkdir("inner")
os.chroot("inner")
"harm"
""",
        refused="chroot",
    ),
    # --- what is collected ----------------------------------------------------------------------
    Snippet(
        "linked_artifact",
        """
os.symlink(outside + "/secret", "artifacts/report.txt")
os.symlink("/proc/self/environ", "artifacts/environ")
""",
        OK,
        control="files are not collected without the sandbox",
    ),
    Snippet(
        "linked_folder_of_artifacts",
        """
os.rmdir("artifacts")
os.symlink(outside, "artifacts")
""",
        OK,
        control="files are not collected without the sandbox",
    ),
    Snippet(
        "linked_inner_folder_of_artifacts",
        """
os.symlink(outside, "artifacts/inner")
""",
        OK,
        control="files are not collected without the sandbox",
    ),
    Snippet(
        "pipe_as_artifact",
        """
os.mkfifo("artifacts/report.txt")
""",
        OK,
        control="files are not collected without the sandbox",
    ),
    Snippet(
        "artifact_with_two_names",
        """
open("one", "w").write("x")
os.link("one", "artifacts/report.txt")
""",
        OK,
        at_landlock=(OK, DENIED),
        control="files are not collected without the sandbox",
    ),
    Snippet(
        "odd_names_of_artifacts",
        """
for name in ("line\\nbreak", "back\\\\slash", "\\x1b[31m", b"\\xff\\xfe", "a" * 255, "fine.txt"):
    path = os.path.join(b"artifacts", os.fsencode(name))
    open(path, "w").write("x")
""",
        OK,
        artifacts=("a" * 255, "fine.txt"),
        control="files are not collected without the sandbox",
    ),
    Snippet(
        "artifacts_with_holes",
        """
with open("artifacts/hole", "wb") as file:
    file.truncate(10 << 30)
"harm"
""",
        FILE_SIZE,
        artifacts=("hole",),
    ),
    Snippet(
        "changing_artifact",
        """
open("artifacts/report.txt", "w").write("x" * 1000)
if os.fork() == 0:
    while True:
        os.rename("artifacts/report.txt", "artifacts/other.txt")
        os.rename("artifacts/other.txt", "artifacts/report.txt")
""",
        OK,
        at_landlock=DENIED,
        artifacts=("*",),
        control="files are not collected without the sandbox",
    ),
    # --- too much -------------------------------------------------------------------------------
    Snippet(
        "one_big_file",
        """
with open("big", "wb") as file:
    for _ in range(20):
        file.write(bytes(1 << 20))
"harm"
""",
        FILE_SIZE,
    ),
    Snippet(
        "many_big_files",
        """
for number in range(20):
    open(f"big{number}", "wb").write(bytes(4 << 20))
time.sleep(patience)
"harm"
""",
        DISK,
    ),
    Snippet(
        "many_files",
        """
for number in range(3_000):
    open(f"file{number}", "w").close()
time.sleep(patience)
"harm"
""",
        DISK,
        limits={"cpu_ms": 5000},
    ),
    Snippet(
        "deep_folders",
        """
for _ in range(1_500):
    os.mkdir("d")
    os.chdir("d")
time.sleep(0.5)
"done"
""",
        (OK, DISK),
        control=NO_HARM,
    ),
    Snippet(
        "burn_beside_deep_folders",
        """
for _ in range(1_500):
    os.mkdir("d")
    os.chdir("d")
time.sleep(0.5)  # until the folder was looked at
until = time.process_time() + 1.0
while time.process_time() < until:
    pass
"harm"
""",
        "RESOURCE_LIMIT/CPU_LIMIT",
        at_landlock="RESOURCE_LIMIT/DISK_LIMIT",  # no search goes deeper than a hundred folders
        limits={"cpu_ms": 500},
        slow=True,
    ),
    Snippet(
        "big_files_in_deep_folders",
        """
for _ in range(30):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
for number in range(20):
    open(f"big{number}", "wb").write(bytes(4 << 20))
time.sleep(patience)
"harm"
""",
        DISK,
        slow=True,
    ),
    Snippet(
        "deleted_but_open_files",
        """
kept = []
for number in range(10):
    file = open("big", "wb")
    os.unlink("big")
    file.write(bytes(4 << 20))
    file.flush()
    kept.append(file)
time.sleep(patience)
"harm"
""",
        DISK,
        slow=True,
    ),
    Snippet(
        "deleted_files_in_deep_folders",
        """
for _ in range(30):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
for number in range(10):
    os.write(os.open("big", os.O_WRONLY | os.O_CREAT), bytes(4 << 20))
    os.unlink("big")
time.sleep(patience)
"harm"
""",
        DISK,
        slow=True,
    ),
    Snippet(
        "unnamed_files",
        """
kept = []
for number in range(10):
    kept.append(os.open(".", os.O_TMPFILE | os.O_WRONLY))
    os.write(kept[-1], bytes(4 << 20))
time.sleep(patience)
"harm"
""",
        DISK,
        slow=True,
    ),
    Snippet(
        "deleted_but_mapped_files",
        """
libc.mmap.restype = ctypes.c_void_p
for number in range(10):
    file = os.open("big", os.O_RDWR | os.O_CREAT)
    os.unlink("big")
    os.write(file, bytes(4 << 20))
    libc.mmap(None, ctypes.c_size_t(4096), 1, 1, file, ctypes.c_long(0))
    os.close(file)
time.sleep(patience)
"harm"
""",
        DISK,
        slow=True,
    ),
    Snippet(
        "deleted_files_in_a_socket",
        """
one, other = socket.socketpair()
for number in range(10):
    file = os.open("big", os.O_WRONLY | os.O_CREAT)
    os.unlink("big")
    os.write(file, bytes(4 << 20))
    socket.send_fds(one, [b"x"], [file])
    os.close(file)
time.sleep(patience)
"harm"
""",
        DISK,
        slow=True,
    ),
    Snippet(
        "deleted_files_without_a_first_thread",
        """
import threading
def take():
    time.sleep(0.1)
    for number in range(10):
        file = os.open("big", os.O_WRONLY | os.O_CREAT)
        os.unlink("big")
        os.write(file, bytes(4 << 20))
    time.sleep(patience)
    os.write(3, b'{"result": "harm"}' + bytes([10]))
    os._exit(0)
threading.Thread(target=take).start()
libc.syscall(ctypes.c_long(calls["exit"]), ctypes.c_long(0))
""",
        (DISK, "USER_CODE_ERROR/EXITED_WITHOUT_RESULT"),  # at full the write fails in the thread
        at_landlock=DISK,
        control="without the sandbox descriptor 3 is another file",
        slow=True,
        seconds_max=9,
        only=LANDLOCK,
    ),
    Snippet(
        "preallocated_files",
        """
kept = []
for number in range(10):
    kept.append(os.open("big", os.O_WRONLY | os.O_CREAT))
    os.unlink("big")
    call("fallocate", kept[-1], 1, 0, 64 << 20)  # FALLOC_FL_KEEP_SIZE: no limit on a file holds
time.sleep(patience)
"harm"
""",
        (DISK, FILE_SIZE),
        at_landlock=RAISED,  # a file system without it says the same, and libraries write instead
    ),
    Snippet(
        "instantly_allocated_files",
        """
for number in range(30):
    file = os.open(f"big{number}", os.O_WRONLY | os.O_CREAT)
    call("fallocate", file, 0, 0, 7 << 20)
time.sleep(patience)
"harm"
""",
        DISK,
        at_landlock=RAISED,
    ),
    Snippet(
        "many_links",
        """
for number in range(3_000):
    os.symlink("x" * 1000, f"link{number}")
time.sleep(patience)
"harm"
""",
        DISK,
        limits={"cpu_ms": 5000},
        slow=True,
    ),
    Snippet(
        "locks_on_shared_files",
        """
import fcntl
shared = os.open(os.path.join(readable, "shared.py"), os.O_RDONLY)
fcntl.flock(shared, fcntl.LOCK_EX | fcntl.LOCK_NB)
"harm"
""",
        DENIED,
    ),
    Snippet(
        "closed_folders",
        """
for name in ("one", "two"):
    os.mkdir(name)
    open(name + "/file", "w").write("x")
    folder = os.open(name, os.O_RDONLY)
    os.fchmod(folder, 0)
"done"
""",
        OK,
        at_landlock=(OK, DENIED),
        control=NO_HARM,
    ),
    Snippet(
        "full_tmp",
        """
import tempfile
for number in range(20):
    with open(f"{tempfile.gettempdir()}/{number}", "wb") as file:
        file.write(bytes(2 << 20))
time.sleep(patience)
"harm"
""",
        DISK,
    ),
    Snippet(
        "full_shared_memory",
        """
for number in range(20):
    with open(f"/dev/shm/{token}-{number}", "wb") as file:
        file.write(bytes(1 << 20))
"harm"
""",
        DISK,
        at_landlock=DENIED,
    ),
]

"""Memory, in every way that a process can take it."""

from tests.sandbox.hostile.snippet import DENIED, MEMORY, RAISED, Snippet

HOLD = """
time.sleep(patience)
"harm"
"""

SNIPPETS = [
    Snippet("private_memory", "kept = bytearray(b'x') * (150 << 20)" + HOLD, MEMORY),
    Snippet(
        "growing_memory",
        """
kept = []
while len(kept) < 600:
    kept.append(os.urandom(1 << 18))
"""
        + HOLD,
        MEMORY,
        slow=True,
    ),
    Snippet("absurd_memory", "bytearray(1 << 33); 'harm'", MEMORY, control="it takes 8 GiB"),
    Snippet(
        "shared_memory",
        """
import mmap
kept = mmap.mmap(-1, 150 << 20)
for at in range(0, len(kept), 4096):
    kept[at] = 1
"""
        + HOLD,
        DENIED,
        refused="mmap MAP_SHARED|MAP_ANONYMOUS",
    ),
    Snippet(
        "shared_memory_that_is_not_mapped",
        """
import mmap
kept = mmap.mmap(-1, 152 << 20)
for start in range(0, len(kept), 8 << 20):
    kept[start : start + (8 << 20)] = bytes(8 << 20)
    kept.madvise(mmap.MADV_DONTNEED, start, 8 << 20)  # the pages stay, and no process has them
"""
        + HOLD,
        DENIED,
        refused="mmap MAP_SHARED|MAP_ANONYMOUS",
    ),
    Snippet(
        "shared_memory_of_a_device",
        """
import mmap
with open("/dev/zero", "rb") as zero:
    kept = mmap.mmap(zero.fileno(), 152 << 20, mmap.MAP_SHARED, mmap.PROT_READ)
for start in range(0, len(kept), 8 << 20):
    for at in range(start, start + (8 << 20), 4096):
        kept[at]
    kept.madvise(mmap.MADV_DONTNEED, start, 8 << 20)
"""
        + HOLD,
        RAISED,
        at_landlock=DENIED,
    ),
    Snippet(
        "memory_without_a_first_thread",
        """
import threading
def take():
    time.sleep(0.1)
    kept = bytearray(b"x") * (150 << 20)
    time.sleep(patience)
    os.write(3, b'{"result": "harm"}' + bytes([10]))
    os._exit(0)
threading.Thread(target=take).start()
libc.syscall(ctypes.c_long(calls["exit"]), ctypes.c_long(0))  # of this thread alone
""",
        MEMORY,
        control="without the sandbox descriptor 3 is another file",
    ),
    Snippet(
        "memory_of_children",
        """
for _ in range(8):
    if os.fork() == 0:
        kept = bytearray(b"x") * (20 << 20)
        time.sleep(3)
        os._exit(0)
"""
        + HOLD,
        MEMORY,
        at_landlock=DENIED,
    ),
    Snippet(
        "memory_of_started_programs",
        """
import subprocess
code = "import time; kept = bytearray(b'x') * (15 << 20); print('up', flush=True); time.sleep(3)"
up = [sys.executable, "-I", "-S", "-c", code, token]
started = [subprocess.Popen(up, stdout=subprocess.PIPE) for _ in range(10)]
for one in started:
    one.stdout.readline()
"""
        + HOLD,
        MEMORY,
        at_landlock=DENIED,
        limits={"cpu_ms": 4000, "timeout_ms": 5000},
        slow=True,
        seconds_max=6,
    ),
    Snippet(
        "memory_of_orphans",
        """
for _ in range(8):
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            kept = bytearray(b"x") * (20 << 20)
            time.sleep(3)
        os._exit(0)
"""
        + HOLD,
        MEMORY,
        at_landlock=DENIED,
    ),
    Snippet(
        "memory_files",
        """
kept = os.memfd_create("kept")
for _ in range(150):
    os.write(kept, bytes(1 << 20))
"harm"
""",
        DENIED,
    ),
    Snippet(
        "secret_memory_files",
        """
call("memfd_secret", 0)
"harm"
""",
        DENIED,
        control="not every kernel has them",
    ),
    Snippet(
        "page_tables",
        """
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
size = 80 << 30
start = libc.mmap(None, size, 1, 0x4022, -1, 0)  # readable, private, anonymous, not reserved
byte = ctypes.c_char * 1
for at in range(0, size, 2 << 20):
    byte.from_address(start + at).raw
"""
        + HOLD,
        MEMORY,
        slow=True,
    ),
    Snippet(
        "buffers_of_sockets",
        """
for _ in range(8):
    if os.fork() == 0:
        kept = []
        try:
            while len(kept) < 28:
                pair = socket.socketpair()
                kept.append(pair)
                for end in pair:
                    end.setblocking(False)
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
                    while True:
                        try:
                            end.send(bytes(65536))
                        except BlockingIOError:
                            break
        except OSError:
            pass
        time.sleep(3)
        os._exit(0)
time.sleep(patience)
"harm"
""",
        MEMORY,
        at_landlock=DENIED,
        slow=True,
    ),
    Snippet(
        "buffers_of_pipes",
        """
import fcntl
kept = [os.pipe() for _ in range(20)]
for _, end in kept:
    fcntl.fcntl(end, 1031, 1 << 20)  # F_SETPIPE_SZ
    os.write(end, bytes(1 << 20))
"harm"
""",
        DENIED,
    ),
    Snippet(
        "mapped_files",
        """
import mmap
with open("mapped", "wb") as file:
    file.truncate(7 << 20)
kept = []
for number in range(12):
    with open(f"mapped{number}", "w+b") as file:
        file.truncate(7 << 20)
        kept.append(mmap.mmap(file.fileno(), 7 << 20))
        for at in range(0, 7 << 20, 4096):
            kept[-1][at] = 1
time.sleep(patience)
"harm"
""",
        (MEMORY, "RESOURCE_LIMIT/DISK_LIMIT", "USER_CODE_ERROR/KILLED_BY_SIGNAL"),
    ),
]

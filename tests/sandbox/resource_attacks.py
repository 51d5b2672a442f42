"""Attacks on memory and disk that go on until something stops them, or far beyond any limit."""

GIB_MB = 1024
HOLD = "time.sleep(1.0)\n"

MEMORY = {
    "private memory": f"""
kept = []
while len(kept) < {GIB_MB}:
    kept.append(bytearray(b"x") * (1 << 20))
""",
    "shared memory that is not mapped": f"""
import mmap
kept = mmap.mmap(-1, {GIB_MB} << 20)
for start in range(0, len(kept), 8 << 20):
    kept[start : start + (8 << 20)] = bytes(8 << 20)
    kept.madvise(mmap.MADV_DONTNEED, start, 8 << 20)
""",
    "many small shared mappings": f"""
import mmap
kept = []
for _ in range({GIB_MB} * 16):
    kept.append(mmap.mmap(-1, 1 << 16))
    kept[-1][:] = bytes(1 << 16)
    kept[-1].madvise(mmap.MADV_DONTNEED)
""",
    "shared memory of a device": f"""
import mmap
with open("/dev/zero", "rb") as zero:
    kept = mmap.mmap(zero.fileno(), {GIB_MB} << 20, mmap.MAP_SHARED, mmap.PROT_READ)
for start in range(0, len(kept), 8 << 20):
    kept.madvise(22, start, 8 << 20)  # MADV_POPULATE_READ
    kept.madvise(mmap.MADV_DONTNEED, start, 8 << 20)
""",
    "memory files": f"""
kept = os.memfd_create("kept")
for _ in range({GIB_MB}):
    os.write(kept, bytes(1 << 20))
""",
    "memory of System V": f"""
segment = call("shmget", 0, {GIB_MB} << 20, 0o1600)
call("shmat", segment, 0, 0)
""",
    "memory of children": """
for _ in range(16):
    if os.fork() == 0:
        kept = bytearray(b"x") * (60 << 20)
        time.sleep(1)
        os._exit(0)
""",
    "memory without a first thread": f"""
import threading
def take():
    time.sleep(0.05)
    kept = []
    while len(kept) < {GIB_MB}:
        kept.append(bytearray(b"x") * (1 << 20))
    time.sleep(1)
    os._exit(0)
threading.Thread(target=take).start()
libc.syscall(ctypes.c_long(calls["exit"]), ctypes.c_long(0))
""",
    "page tables": """
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
size = 300 << 30
start = libc.mmap(None, size, 1, 0x4022, -1, 0)
byte = ctypes.c_char * 1
for at in range(0, size, 2 << 20):
    byte.from_address(start + at).raw
""",
    "buffers of sockets": """
for _ in range(24):
    if os.fork() == 0:
        kept = []
        try:
            while len(kept) < 28:
                pair = socket.socketpair()
                kept.append(pair)
                for end in pair:
                    end.setblocking(False)
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
                    while True:
                        try:
                            end.send(bytes(65536))
                        except BlockingIOError:
                            break
        except OSError:
            pass
        time.sleep(1)
        os._exit(0)
""",
    "buffers of pipes": """
import fcntl
for _ in range(24):
    if os.fork() == 0:
        kept = [os.pipe() for _ in range(25)]
        for _, end in kept:
            os.set_blocking(end, False)
            try:
                fcntl.fcntl(end, 1031, 1 << 20)  # F_SETPIPE_SZ
            except OSError:
                pass
            os.write(end, bytes(1 << 20))
        time.sleep(1)
        os._exit(0)
""",
}

_TAKE = """
def take(number, flags=os.O_RDWR | os.O_CREAT):
    file = os.open(f"big{number}", flags)
    os.write(file, bytes(7 << 20))
    return file
def deleted(number):
    file = take(number)
    os.unlink(f"big{number}")
    return file
"""

DISK = {
    "named files": _TAKE + "for number in range(150): os.close(take(number))\n",
    "deleted files": _TAKE + "kept = [deleted(number) for number in range(50)]\n",
    "files that never had a name": """
kept = [os.open(".", os.O_TMPFILE | os.O_RDWR) for _ in range(50)]
for file in kept:
    os.write(file, bytes(7 << 20))
""",
    "deleted and mapped files": _TAKE
    + """
libc.mmap.restype = ctypes.c_void_p
for number in range(150):
    file = deleted(number)
    libc.mmap(None, ctypes.c_size_t(4096), 1, 1, file, ctypes.c_long(0))
    os.close(file)
""",
    "deleted files in a socket": _TAKE
    + """
one, other = socket.socketpair()
for number in range(50):
    file = deleted(number)
    socket.send_fds(one, [b"x"], [file])
    os.close(file)
""",
    "preallocated files": """
for number in range(50):
    file = os.open("big", os.O_RDWR | os.O_CREAT)
    os.unlink("big")
    call("fallocate", file, 1, 0, 100 << 20)
""",
    "allocated files": """
for number in range(150):
    file = os.open(f"big{number}", os.O_RDWR | os.O_CREAT)
    try:
        call("fallocate", file, 0, 0, 7 << 20)
    except OSError:
        os.posix_fallocate(file, 0, 7 << 20)
    os.close(file)
""",
}

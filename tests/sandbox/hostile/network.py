"""Reaching the network, and other processes that listen on the machine."""

from tests.sandbox.hostile.snippet import DENIED, HARM, OK, RAISED, Snippet

X86 = "x86_64"

SNIPPETS = [
    Snippet(
        "tcp",
        """
with socket.create_connection(("127.0.0.1", tcp_port), timeout=1) as line:
    line.sendall(b"x")
"harm"
""",
        refused="socket AF_INET",
    ),
    Snippet(
        "tcp_swallowed",
        """
try:
    socket.create_connection(("127.0.0.1", tcp_port), timeout=1)
    found = "harm"
except OSError:
    found = "nothing"
found
""",
        OK,
        value="nothing",
    ),
    Snippet(
        "udp",
        """
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
    line.sendto(b"x", ("127.0.0.1", udp_port))
"harm"
""",
        refused="socket AF_INET",
    ),
    Snippet(
        "dns",
        """
socket.getaddrinfo("example.org", 80)
"harm"
""",
        control="the machine may have no resolver",
    ),
    Snippet(
        "tcp_by_raw_calls",
        """
import struct
line = call("socket", 2, 1, 0)
address = struct.pack("=H", 2) + struct.pack(">H", tcp_port) + bytes([127, 0, 0, 1]) + bytes(8)
call("connect", line, ctypes.c_char_p(address), len(address))
"harm"
""",
        refused="socket AF_INET",
    ),
    Snippet(
        "tcp_by_reimported_module",
        """
sys.modules.pop("_socket"); sys.modules.pop("socket")
import _socket
line = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, 0)
line.connect(("127.0.0.1", tcp_port))
"harm"
""",
        refused="socket AF_INET",
    ),
    Snippet(
        "tcp_by_a_child",
        """
import subprocess
code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))"
subprocess.run([sys.executable, "-I", "-c", code, str(tcp_port)], check=True)
"harm"
""",
        expected=RAISED,  # the child's error, which its parent sees as an exit code
        at_landlock=DENIED,  # to start the child
        slow=True,
    ),
    Snippet(
        "ipv6",
        """
socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
"harm"
""",
        refused="socket AF_INET6",
    ),
    Snippet(
        "server",
        """
with socket.socket() as server:
    server.bind(("127.0.0.1", 0))
    server.listen()
"harm"
""",
        refused="socket AF_INET",
    ),
    Snippet(
        "unix_socket_in_a_readable_folder",
        """
with socket.socket(socket.AF_UNIX) as line:
    line.connect(unix_stream)
"harm"
""",
        refused="socket AF_UNIX",
    ),
    Snippet(
        "abstract_socket",
        """
with socket.socket(socket.AF_UNIX) as line:
    line.connect("\\0" + token)
"harm"
""",
        refused="socket AF_UNIX",
    ),
    Snippet(
        "datagram_pair_connected_elsewhere",
        """
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
one.connect(unix_datagram)
one.send(b"x")
"harm"
""",
        refused="socketpair",
    ),
    Snippet(
        "datagram_pair_sends_elsewhere",
        """
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
one.connect(unix_datagram)
one.sendto(b"x", unix_datagram)
"harm"
""",
        refused="socketpair",
    ),
    Snippet(
        "sequenced_pair_connected_elsewhere",
        """
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
call("connect", one.fileno(), ctypes.c_char_p(b"\\1\\0" + unix_stream.encode()), 110)
"harm"
""",
        refused="connect",
        control="the kernel refuses it without a sandbox too",
    ),
    Snippet(
        "sendto_with_an_address",
        """
one, other = socket.socketpair()
one.sendto(b"x", unix_datagram)
"harm"
""",
        refused="sendto",
        control="the kernel refuses it without a sandbox too",
    ),
    *(
        Snippet(
            f"{name}_socket",
            f"""
line = socket.socket({family}, {kind})
"harm"
""",
            control=control,
        )
        for name, family, kind, control in (
            ("netlink", "socket.AF_NETLINK", "socket.SOCK_RAW", ""),
            ("packet", "socket.AF_PACKET", "socket.SOCK_RAW", ""),
            ("raw", "socket.AF_INET", "socket.SOCK_RAW, 1", ""),
            ("crypto", "38", "socket.SOCK_SEQPACKET", "not every kernel has it"),
            ("hypervisor", "40", "socket.SOCK_STREAM", "not every kernel has it"),
        )
    ),
    Snippet(
        "calls_of_32_bit_machines",
        """
import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("b814000000" "cd80" "c3"))  # mov eax, getpid; int 0x80; ret
start = ctypes.addressof(ctypes.c_char.from_buffer(page))
if ctypes.CFUNCTYPE(ctypes.c_int)(start)() > 0:
    found = "harm"
found
""",
        DENIED,
        control="not every kernel has them",
        machine=X86,
    ),
    Snippet(
        "calls_of_x32",
        """
libc.syscall(ctypes.c_long(0x40000000 + 41), ctypes.c_long(2), ctypes.c_long(1), ctypes.c_long(0))
"harm"
""",
        DENIED,
        control="not every kernel has them",
        machine=X86,
    ),
    Snippet(
        "network_of_the_machine_seen",
        """
with open("/proc/self/net/dev") as file:
    names = {line.split(":")[0].strip() for line in file if ":" in line}
"harm" if names - {"lo"} else "alone"
""",
        OK,
        at_landlock=(OK, DENIED),
        control="the machine may have no other interface",
        value="alone",
    ),
]

assert HARM == "harm"

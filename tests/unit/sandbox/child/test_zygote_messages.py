"""What worker and zygote tell each other arrives whole, with its descriptors."""

import os
import socket
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ade.sandbox.child import zygote_messages
from ade.sandbox.child.zygote_messages import Malformed, Message

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Give both ends of a line."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        yield one, other


big = st.integers(0, (1 << 64) - 1)
any_message = st.builds(
    Message,
    kind=st.integers(0, (1 << 32) - 1),
    number=big,
    status=st.integers(-(1 << 31), (1 << 31) - 1),
    user_us=big,
    system_us=big,
    peak_kb=big,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(message=any_message)
def test_a_message_arrives_as_it_was_sent(pair: Pair, message: Message) -> None:
    zygote_messages.send(pair[0], message)
    assert zygote_messages.receive(pair[1]) == (message, [], 0)


def test_descriptors_arrive_closed_on_exec(pair: Pair) -> None:
    ends = os.pipe()
    zygote_messages.send(pair[0], Message(zygote_messages.SPAWN, 7), ends)
    received = zygote_messages.receive(pair[1])
    assert received is not None
    message, (reading, writing), _ = received
    assert message == Message(zygote_messages.SPAWN, 7)
    assert not os.get_inheritable(reading)
    os.write(writing, b"x")
    assert os.read(ends[0], 1) == b"x"
    for descriptor in (*ends, reading, writing):
        os.close(descriptor)


def test_too_many_descriptors_do_not_stay_open(pair: Pair) -> None:
    before = len(os.listdir("/proc/self/fd"))
    socket.send_fds(pair[0], [Message(zygote_messages.SPAWN).pack()], [0] * 50)
    with pytest.raises(Malformed):
        zygote_messages.receive(pair[1])
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_sender_is_named_by_the_kernel(pair: Pair) -> None:
    pair[1].setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    zygote_messages.send(pair[0], Message(zygote_messages.HELLO))
    received = zygote_messages.receive(pair[1])
    assert received is not None
    assert received[2] == os.getpid()


@pytest.mark.parametrize("data", [b"x", b"x" * 10, b"x" * 1000])
def test_a_message_of_another_size_is_malformed_and_leaves_nothing_open(
    pair: Pair, data: bytes
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    socket.send_fds(pair[0], [data], [0, 1])
    with pytest.raises(Malformed):
        zygote_messages.receive(pair[1])
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_closed_line_is_the_end(pair: Pair) -> None:
    pair[0].close()
    assert zygote_messages.receive(pair[1]) is None

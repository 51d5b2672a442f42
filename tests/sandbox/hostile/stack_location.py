"""Where the code was when it was stopped: it may tell, be silent or lie, and nothing else changes.

A snippet's `place` is the line of its source that its error must name, NOWHERE that it names none.
"""

from tests.sandbox.hostile.snippet import CPU, MEMORY, NO_HARM, NOWHERE, TIMED_OUT, Snippet

BRIEF = {"cpu_ms": 300}
SHORT = {"timeout_ms": 300}
SPIN = "\nwhile True: pass  # here\n"
HERE = "while True: pass  # here"
# What a job answers instead of its interpreter.
ANSWERING = """
def answer(number, frame):
    {}
signal.signal(signal.SIGXCPU, answer)
"""


def _stopped(name: str, source: str, expected: str, place: str, **limits: int) -> Snippet:
    is_timed = expected == TIMED_OUT
    return Snippet(
        name, source, expected, control=NO_HARM, place=place, is_timed=is_timed, limits=limits
    )


SNIPPETS = [
    _stopped("place_of_a_loop", SPIN, CPU, HERE, **BRIEF),
    _stopped(
        "place_in_a_library",
        "import re\nre.match('(a+)+$', 'a' * 60 + 'b')  # here",
        CPU,
        "re.match('(a+)+$', 'a' * 60 + 'b')  # here",
        **BRIEF,
    ),
    _stopped("place_of_a_sleep", "time.sleep(60)", TIMED_OUT, "time.sleep(60)", **SHORT),
    _stopped(
        "place_of_a_read",
        "ends = os.pipe()\nos.read(ends[0], 1)",
        TIMED_OUT,
        "os.read(ends[0], 1)",
        **SHORT,
    ),
    _stopped(
        "place_of_hunger",
        "kept = []\nwhile True: kept.append(os.urandom(1 << 16))",
        MEMORY,
        "while True: kept.append(os.urandom(1 << 16))",
    ),
    _stopped(
        "place_of_a_thread",
        "import threading\ndef spin():\n    while True: pass\n"
        "threading.Thread(target=spin, daemon=True).start()\ntime.sleep(60)",
        CPU,
        "time.sleep(60)",
        **BRIEF,
    ),
    _stopped(
        "place_not_told",
        "signal.signal(signal.SIGXCPU, signal.SIG_IGN)" + SPIN,
        CPU,
        NOWHERE,
        **BRIEF,
    ),
    _stopped(
        "place_left_to_the_kernel",
        "signal.signal(signal.SIGXCPU, signal.SIG_DFL)" + SPIN,
        CPU,
        NOWHERE,
        **BRIEF,
    ),
    _stopped(
        "place_not_asked_for",
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGXCPU})" + SPIN,
        CPU,
        NOWHERE,
        **BRIEF,
    ),
    _stopped("place_without_a_line", "os.closerange(3, 64)" + SPIN, CPU, NOWHERE, **BRIEF),
    _stopped(
        "time_over_without_a_line", "os.closerange(3, 64)" + SPIN, TIMED_OUT, NOWHERE, **SHORT
    ),
    _stopped(
        "place_made_up",
        ANSWERING.format("os.write(3, b'  File \"cell.py\", line 2 in f\\n')") + SPIN,
        CPU,
        "import ctypes, errno, os, signal, socket, sys, time",
        **BRIEF,
    ),
    _stopped(
        "place_told_slowly",
        ANSWERING.format(
            "os.write(3, b'  File \"/lib/re.py\", line 1 in match\\n'); time.sleep(0.2); "
            "os.write(3, b'  File \"cell.py\", line 2 in f\\n')"
        )
        + SPIN,
        CPU,
        "import ctypes, errno, os, signal, socket, sys, time",
        **BRIEF,
    ),
    _stopped(
        "place_in_another_file",
        ANSWERING.format("os.write(3, b'  File \"/etc/passwd\", line 1 in root\\n')") + SPIN,
        CPU,
        NOWHERE,
        **BRIEF,
    ),
    _stopped(
        "place_beyond_the_end",
        ANSWERING.format("os.write(3, b'  File \"cell.py\", line 4242 in f\\n')") + SPIN,
        CPU,
        NOWHERE,
        **BRIEF,
    ),
    _stopped(
        "answering_with_a_result",
        ANSWERING.format("os.write(3, b'{\"result\": 1}\\n'); os._exit(0)") + SPIN,
        CPU,
        NOWHERE,
        **BRIEF,
    ),
    _stopped(
        "late_with_a_result",
        ANSWERING.format("os.write(3, b'{\"result\": 1}\\n'); os._exit(0)") + SPIN,
        TIMED_OUT,
        NOWHERE,
        **SHORT,
    ),
    _stopped(
        "answering_for_ever",
        ANSWERING.format("while True: os.write(3, b'  File \"cell.py\", line 2 in f\\n' * 999)")
        + SPIN,
        CPU,
        "import ctypes, errno, os, signal, socket, sys, time",
        **BRIEF,
    ),
]

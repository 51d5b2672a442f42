"""What is not contained, or not judged rightly, today: a test that shows it, where, and why.

Each line is a strict expectation: when the gap is closed its test says so, and the line goes.
"""

from tests.sandbox.modes import LANDLOCK, MODES

EVERYWHERE = tuple(mode.name for mode in MODES)
WITHOUT_NAMESPACES = tuple(mode.name for mode in MODES if mode.level == LANDLOCK)
WITH_NAMESPACES = tuple(mode.name for mode in MODES if mode.level != LANDLOCK)

AS_THE_WORKERS_USER = ("user-landlock",)

UNCOUNTED = "only a memory cgroup counts it, and here there is none"
NOT_SHOWN = "without CAP_SYS_PTRACE smaps_rollup cannot be read, and that counts as no memory"
ON_A_DISK = "the watch over a folder on a disk goes by paths, from outside"
BELIEVED = "a setup error is believed after the walls were said to stand"
SHAPES = "the judge trusts the shape of what a child says of its exception"

GAPS: dict[str, tuple[tuple[str, ...], str]] = {
    "page_tables": (EVERYWHERE, UNCOUNTED),
    "buffers_of_sockets": (WITH_NAMESPACES, UNCOUNTED),
    "cpu_of_forgotten_children": (
        WITH_NAMESPACES,
        "the time of children that nobody waits for is forgotten with them",
    ),
    "network_of_the_machine_seen": (WITHOUT_NAMESPACES, "/proc/self/net is the machine's"),
    "fchmod_of_what_is_readable": (AS_THE_WORKERS_USER, "fchmod needs no right to write"),
    "private_memory": (("docker",), NOT_SHOWN),
    "growing_memory": (("docker",), NOT_SHOWN),
    "shared_memory": (("docker",), NOT_SHOWN),
    "burn_beside_deep_folders": (WITHOUT_NAMESPACES, ON_A_DISK),
    "big_files_in_deep_folders": (WITHOUT_NAMESPACES, ON_A_DISK),
    "deleted_but_open_files": (WITHOUT_NAMESPACES, ON_A_DISK),
    "forged_internal_error": (EVERYWHERE, BELIEVED),
    "forged_internal_error_beside_a_result": (EVERYWHERE, BELIEVED),
    "malformed_failure_4": (EVERYWHERE, SHAPES),
    "malformed_failure_5": (EVERYWHERE, SHAPES),
    "malformed_failure_6": (EVERYWHERE, SHAPES),
}

# The watch fails only if it looks at the wrong moment.
BY_CHANCE = {"burn_beside_deep_folders"}
# Situations in which no job runs at all.
SHUT = {
    "no-sys-admin": "after setuid a process may not write its own uid_map (PR_SET_DUMPABLE)",
}


def reason(snippet: str, mode: str) -> str | None:
    """Say why a snippet is known not to be contained in a situation; None if it must be."""
    modes, why = GAPS.get(snippet, ((), ""))
    return SHUT.get(mode) or (why if mode in modes else None)

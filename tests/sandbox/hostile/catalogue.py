"""All snippets, by name."""

from tests.sandbox.hostile import (
    files,
    interpreter,
    kernel,
    memory,
    network,
    processes,
    results,
    stack_location,
)
from tests.sandbox.hostile.snippet import Snippet

ALL: list[Snippet] = [
    *network.SNIPPETS,
    *files.SNIPPETS,
    *memory.SNIPPETS,
    *processes.SNIPPETS,
    *kernel.SNIPPETS,
    *results.SNIPPETS,
    *interpreter.SNIPPETS,
    *stack_location.SNIPPETS,
]
BY_NAME = {snippet.name: snippet for snippet in ALL}
assert len(BY_NAME) == len(ALL), "two snippets have the same name"

"""Run the `main(inputs, channel)` of an entry module and report on the channel how it ended."""

import importlib
import os
from contextlib import suppress
from typing import Any, TextIO

from ade_engine.channel import ARTIFACTS_FOLDER, ArtifactLimits, Channel, ResultNotJson
from ade_engine.describe_exception import describe
from ade_engine.interpreter_exit import (
    FAILED,
    FirstProcessOnly,
    exit_message,
    exit_status,
    flush_streams,
    print_exit_message,
)
from ade_engine.stack_dump import dump_stack_to


def run_entry(
    entry: str, inputs: dict[str, Any], stream: TextIO, limits: ArtifactLimits | None = None
) -> int:
    """Run the entry module; return the exit status of the process.

    With `limits` the process exists for this job alone and ends with it.
    """
    channel = Channel(stream, limits)
    dump_stack_to(stream)
    with suppress(OSError):  # a job without a writable folder leaves no artifacts
        os.mkdir(ARTIFACTS_FOLDER)
    try:
        try:
            with FirstProcessOnly():
                value = importlib.import_module(entry).main(inputs, channel)
        finally:
            flush_streams()
        try:
            channel.result(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise ResultNotJson(str(error)) from None
    except ResultNotJson as error:
        channel.failure({"result_not_json": f"The result cannot be written as JSON: {error}."})
        return FAILED
    except SystemExit as end:
        print_exit_message(end)
        flush_streams()
        channel.failure({"exit": exit_status(end), "exit_message": exit_message(end)})
        return FAILED
    except BaseException as error:
        channel.failure(describe(error))
        return FAILED
    return 0

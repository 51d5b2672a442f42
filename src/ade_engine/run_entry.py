"""Run the `main(inputs, channel)` of an entry module and report on the channel how it ended."""

import importlib
import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from ade_engine.channel import ARTIFACTS_FOLDER, Channel, ResultNotJson
from ade_engine.describe_exception import describe
from ade_engine.stack_dump import dump_stack_to

FAILED = 1


def run_entry(entry: str, inputs: dict[str, Any], stream: TextIO) -> int:
    """Run the entry module; return the exit status of the process."""
    channel = Channel(stream)
    dump_stack_to(stream)
    with suppress(OSError):  # a job without a writable folder leaves no artifacts
        os.mkdir(ARTIFACTS_FOLDER)
    try:
        try:
            value = importlib.import_module(entry).main(inputs, channel)
        finally:
            _flush()
        try:
            channel.result(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise ResultNotJson(str(error)) from None
    except ResultNotJson as error:
        channel.failure({"result_not_json": f"The result cannot be written as JSON: {error}."})
        return FAILED
    except SystemExit as end:
        channel.failure({"exit": _status(end)})
        return FAILED
    except BaseException as error:
        channel.failure(describe(error))
        return FAILED
    return 0


def _status(end: SystemExit) -> int:
    if end.code is None:
        return 0
    return end.code if isinstance(end.code, int) else FAILED


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the job may have closed or replaced the stream
            continue

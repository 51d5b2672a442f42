"""Where a child's code was when it was stopped: its stack trace, checked against its sources.

The model. A child that exceeds a limit gets SIGXCPU a moment before it is killed; the kernel sends
the same signal when the CPU time is used up. The interpreter then writes its stack to the line
(`ade_engine.stack_dump`). The reason for the end is known before that and does not depend on the
answer, so a child may answer anything. Only what can be checked is repeated: a source file that the
job was given, a line that the file has, a function that it defines. So no value of a cell can get
into a message; what a package reveals by choosing among its own lines cannot be prevented.

    the child                                  what is reported
    -----------------------------------------  -----------------------------------------------------
    runs the job's code, or a library for it   file, line, function, field, and the line's source
    runs the engine                            what the engine was doing
    does not answer: it replaced the handler,  the engine's last progress, if there was any
    closed the line, or was killed first
    answers with another line of its sources   that line: it misleads its own author only
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ade.domain.outcome import CodeLocation
from ade.domain.units import MIB

# How long a child may take to answer before it is killed; it runs at a low priority.
ANSWER_SECONDS = 1.0
FRAMES_MAX = 200
FRAME_BYTES_MAX = 2_000
SOURCE_BYTES_MAX = MIB
SOURCE_CHARACTERS_MAX = 200
# The outermost frame of the job's own stack: what calls it is ADE's runtime.
OUTERMOST = ("/ade_engine/run_entry.py", "run_entry")
CUT = b"  ..."
BEGINS = (b"Stack (most recent call first):", b"Current thread ", b"Thread ")
_FRAME = re.compile(r'  File "(.+)", line (\d{1,7}) in (.+)')
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")
# What the engine does in each of its folders.
DOING = {
    "sheets": "reading the file",
    "tables": "looking for tables",
    "mapping": "mapping columns",
    "pipeline": "working on the rows",
    "package": "working on the rows",
    "writing": "writing the output",
}
# What the engine says that it is doing: a phase, or the hooks of an event.
PROGRESS = {
    "reading": "reading the file",
    "writing": "writing the output",
    **{
        event: f"running {event}"
        for event in ("on_job_start", "on_table_mapped", "on_table_written", "on_job_end")
    },
}
_ENGINE = re.compile(r"/ade_engine/(\w+)/\w+\.py$")


class StackFrame(NamedTuple):
    """Hold one frame of a stack, as a child reports it."""

    file: str
    line: int
    name: str


class StackTrace:
    """Keep the newest stack that a child reports, innermost frame first."""

    def __init__(self) -> None:
        self.frames: list[StackFrame] = []
        self.is_whole = False

    def receive(self, line: bytes) -> None:
        """Take one line that is not JSON."""
        if line.startswith(BEGINS):
            self.frames.clear()
            self.is_whole = False
        elif line == CUT:
            self.is_whole = True
        elif len(self.frames) < FRAMES_MAX and len(line) <= FRAME_BYTES_MAX:
            match = _FRAME.fullmatch(line.decode("ascii", errors="replace"))
            if match is not None:
                frame = StackFrame(_unescaped(match[1]), int(match[2]), _unescaped(match[3]))
                self.frames.append(frame)
                self.is_whole = self.is_whole or _is_outermost(frame)


def _is_outermost(frame: StackFrame) -> bool:
    file, name = OUTERMOST
    return frame.name == name and frame.file.endswith(file)


def _unescaped(escaped: str) -> str:
    """Decode the escapes that the interpreter writes for characters beyond ASCII."""

    def letter(found: re.Match[str]) -> str:
        code = int(found[1] or found[2] or found[3], 16)
        return chr(code) if code < 0x110000 else "?"

    return _ESCAPED.sub(letter, escaped)


class JobSources:
    """Hold the code that a job was given: the modules of a package, and the cells in its inputs.

    Its other files hold data and do not count as code, whatever their names are.
    """

    def __init__(self, files: Mapping[str, Path], inputs: Mapping[str, Any]) -> None:
        package = inputs.get("config")
        self._package = f"{package}/" if isinstance(package, str) and package else ""
        self._files = {name: path for name, path in files.items() if self._is_module(name)}
        self._cells = dict(_cells(inputs))

    def _is_module(self, name: str) -> bool:
        return bool(self._package) and name.startswith(self._package) and name.endswith(".py")

    def locate(self, frames: Iterable[StackFrame]) -> CodeLocation | None:
        """Find the innermost frame of the job's own code, and the field that it works for."""
        found: CodeLocation | None = None
        for frame in frames:
            name = self._named(frame.file)
            if name is None:
                continue
            if found is None and (found := self._place(name, frame)) is None:
                continue
            if (field := self._field(name)) is not None:
                return CodeLocation(found.file, found.line, found.function, field, found.source)
        return found

    def _named(self, file: str) -> str | None:
        """Return which of the job's files a frame names, wherever the job's folder is."""
        if file in self._cells:
            return file
        parts = file.split("/")
        tails = ("/".join(parts[start:]) for start in range(len(parts)))
        return next((tail for tail in tails if tail in self._files), None)

    def _place(self, name: str, frame: StackFrame) -> CodeLocation | None:
        text = self._text(name)
        lines = text.splitlines()
        if not 0 < frame.line <= len(lines):
            return None
        is_defined = frame.name.isidentifier() and re.search(
            rf"\b(?:def|class)\s+{re.escape(frame.name)}\b", text
        )
        return CodeLocation(
            file=self._short(name),
            line=frame.line,
            function=frame.name if is_defined else None,
            source=lines[frame.line - 1].strip()[:SOURCE_CHARACTERS_MAX],
        )

    def _text(self, name: str) -> str:
        if name in self._cells:
            return self._cells[name]
        try:
            with self._files[name].open("rb") as file:
                return file.read(SOURCE_BYTES_MAX).decode("utf-8", errors="replace")
        except OSError:
            return ""

    def _short(self, name: str) -> str:
        return name.removeprefix(self._package)

    def _field(self, name: str) -> str | None:
        """Return the field whose rules this file of a package holds, if it is such a file."""
        folder, _, file = self._short(name).rpartition("/")
        stem = file.removesuffix(".py")
        is_field = folder == "columns" and stem.isidentifier() and not stem.startswith("_")
        return stem if is_field and name not in self._cells else None


def _cells(inputs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for group in ({"cells": inputs.get("cells")}, *(inputs.get("snapshots") or ())):
        for cell in group.get("cells") or ():
            yield cell["file"], cell["source"]


def locate(
    stack: StackTrace, sources: JobSources, progress: Mapping[str, Any] | None = None
) -> CodeLocation | None:
    """Return where a child's code was, as far as it can be checked; None if nothing can."""
    found = sources.locate(stack.frames)
    if found is not None:
        return found
    doing = next((text for frame in stack.frames if (text := _doing(frame))), None)
    if doing is None and progress is not None:
        doing = PROGRESS.get(str(progress.get("message")))
    return None if doing is None else CodeLocation(doing=doing)


def _doing(frame: StackFrame) -> str | None:
    folder = _ENGINE.search(frame.file)
    return None if folder is None else DOING.get(folder[1])

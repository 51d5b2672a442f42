"""Where a child's code was when it was stopped: what it answers, held against what is known.

The model. A child that has gone over a limit is asked by SIGXCPU where it is, a moment before it is
killed; the kernel asks likewise when its CPU time is used up. Its interpreter answers on the line
with its stack (`ade_engine.stack_dump`). Why a job ended is known before it is asked and does not
depend on the answer, so a child may answer whatever it likes. Only what is known is repeated: a
file of code that the job was given, a line that it has, a function that it defines. So no value of
a cell is in it; what a package says by choosing among its own lines is beyond that.

    the child                                  what is told
    -----------------------------------------  -----------------------------------------------------
    runs the job's code, or a library for it   file, line, function, field, and the line itself
    runs the engine                            what the engine was doing
    no longer answers: it took the answer      the engine's last words of progress, if it had any
    away, closed the line, or was killed by
    the kernel first
    answers with another place of its files    that place: it deceives its own author only
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ade.domain.outcome import CodeLocation

# How long a child may take to answer before it is killed: it stands back when others are busy.
ANSWER_SECONDS = 1.0
FRAMES_MAX = 200
FRAME_BYTES_MAX = 2_000
SOURCE_BYTES_MAX = 1024 * 1024
SOURCE_CHARACTERS_MAX = 200
# What comes after these in a stack is not the job's, or is not told.
ENDS = ("/ade_engine/run_entry.py", "run_entry")
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
PROGRESS = {"reading": "reading the file", "writing": "writing the output"}
_ENGINE = re.compile(r"/ade_engine/(\w+)/\w+\.py$")


class StackFrame(NamedTuple):
    """Hold one frame of a stack, as a child tells it."""

    file: str
    line: int
    name: str


class StackTrace:
    """Keep the newest stack that a child tells, innermost frame first."""

    def __init__(self) -> None:
        self.frames: list[StackFrame] = []
        self.is_whole = False

    def hear(self, line: bytes) -> None:
        """Take one line that is no word of the job."""
        if line.startswith(BEGINS):
            self.frames.clear()
            self.is_whole = False
        elif line == CUT:
            self.is_whole = True
        elif len(self.frames) < FRAMES_MAX and len(line) <= FRAME_BYTES_MAX:
            told = _FRAME.fullmatch(line.decode("ascii", errors="replace"))
            if told is not None:
                frame = StackFrame(_plain(told[1]), int(told[2]), _plain(told[3]))
                self.frames.append(frame)
                self.is_whole = self.is_whole or _is_outermost(frame)


def _is_outermost(frame: StackFrame) -> bool:
    file, name = ENDS
    return frame.name == name and frame.file.endswith(file)


def _plain(escaped: str) -> str:
    """Turn the interpreter's spelling of letters beyond ASCII back."""

    def letter(found: re.Match[str]) -> str:
        code = int(found[1] or found[2] or found[3], 16)
        return chr(code) if code < 0x110000 else "?"

    return _ESCAPED.sub(letter, escaped)


class JobSources:
    """Know the code that a job was given: the modules of a package, and cells among its inputs.

    Its other files hold values, and are not code, whatever their names are.
    """

    def __init__(self, files: Mapping[str, Path], inputs: Mapping[str, Any]) -> None:
        package = inputs.get("config")
        self._package = f"{package}/" if isinstance(package, str) and package else ""
        self._files = {name: path for name, path in files.items() if self._is_module(name)}
        self._cells = dict(_cells(inputs))

    def _is_module(self, name: str) -> bool:
        return bool(self._package) and name.startswith(self._package) and name.endswith(".py")

    def locate(self, frames: Iterable[StackFrame]) -> CodeLocation | None:
        """Find the innermost frame of the job's own code, and what field it works for."""
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
        """Tell which of the job's files a frame names, whatever folder the job's own is in."""
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
        """Name the field whose rules a file of a package holds."""
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
    """Say where a child was, as far as it answered and is known; None if nothing is."""
    found = sources.locate(stack.frames)
    if found is not None:
        return found
    doing = next((said for frame in stack.frames if (said := _doing(frame))), None)
    if doing is None and progress is not None:
        doing = PROGRESS.get(str(progress.get("message")))
    return None if doing is None else CodeLocation(doing=doing)


def _doing(frame: StackFrame) -> str | None:
    folder = _ENGINE.search(frame.file)
    return None if folder is None else DOING.get(folder[1])

"""The inputs of a cell: its source, its parameters, and the frames that it works on.

A frame does not fit into a parameter: it is uploaded as Parquet and named by its digest, and a
pinned object, which runs before the cell in the same namespace, reads it into a variable. Lines of
the cell keep their numbers.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FRAMES = "client-frames"
_READ = {
    "polars": "{name} = __import__('polars').read_parquet(datasets[{file!r}])",
    "pandas": (
        "{name} = __import__('pandas').DataFrame({{_c.name: _c.to_numpy() for _c in"
        " __import__('polars').read_parquet(datasets[{file!r}])}})"
    ),
}


@dataclass(frozen=True)
class FrameInput:
    """A frame that was uploaded: the variable that it becomes, its digest and its library."""

    variable: str
    digest: str
    library: str

    @property
    def file(self) -> str:
        """Return the name under which the cell finds it."""
        return f"{self.variable}.parquet"


def cell_inputs(
    source: str,
    parameters: Mapping[str, Any],
    frames: Sequence[FrameInput] = (),
    datasets: Mapping[str, str] | None = None,
    requirements: Sequence[str] = (),
    entrypoint: str | None = None,
) -> dict[str, Any]:
    """Write the inputs of a cell; `datasets` are digests by the name that the cell uses."""
    runtime: dict[str, Any] = {"language": "python", "parameters": dict(parameters)}
    if requirements:
        runtime["requirements"] = list(requirements)
    if entrypoint:
        runtime["entrypoint"] = entrypoint
    cell: dict[str, Any] = {"type": "code", "content": _python(source), "runtime": runtime}
    files = {frame.file: frame.digest for frame in frames} | dict(datasets or {})
    depends: list[dict[str, str]] = [
        {"kind": "dataset", "digest": digest, "name": name} for name, digest in files.items()
    ]
    inputs: dict[str, Any] = {"object": cell}
    if frames:
        reading = _python("\n".join(_read(frame) for frame in frames))
        depends.append({"kind": "object", "id": FRAMES})
        inputs["dependency_snapshots"] = [
            {
                "kind": "object",
                "id": FRAMES,
                "content_digest": _digest(reading),
                "content": reading,
            }
        ]
    if depends:
        cell["dependencies"] = depends
    return inputs


def _python(source: str) -> dict[str, str]:
    return {"format": "python", "value": source}


def _read(frame: FrameInput) -> str:
    return _READ[frame.library].format(name=frame.variable, file=frame.file)


def _digest(content: Mapping[str, str]) -> str:
    """Return the digest of the canonical JSON of an object of texts."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

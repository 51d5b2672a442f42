"""`object_execute`: run a cell of Python behind walls."""

import hashlib
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_serializer,
    model_validator,
)

from ade.domain.keys import digest as digest_of
from ade.kinds.kind import Asked, Digest, Kind, OutputSpec, Prepared, Workroom

SOURCE_CHARS_MAX = 500_000
BLOCKS_MAX = 1_000
DEPENDENCIES_MAX = 100
NAME = r"[A-Za-z_][A-Za-z0-9_]{0,99}"
FILE_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.\- ]{0,99}$"
FILE = "cell.py"
# Slow to import, and worth an interpreter of their own that has done so.
HEAVY = {"matplotlib": "ade_engine.preload.figures", "pandas": "pandas", "polars": "polars"}
_HEAVY = re.compile(rf"\b({'|'.join(HEAVY)})\b")

_STRICT = ConfigDict(extra="forbid")
ObjectId = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Source = Annotated[str, StringConstraints(max_length=SOURCE_CHARS_MAX)]


class PythonContent(BaseModel):
    """Hold a cell's source."""

    model_config = _STRICT

    format: Literal["python"]
    value: Source

    def cells(self, file: str = FILE) -> list[dict[str, str]]:
        """Return the pieces of code, each with the name that errors give it."""
        return [{"file": file, "source": self.value}]


class Block(BaseModel):
    """Hold one block of a document; blocks that are no code are left to others."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, StringConstraints(min_length=1, max_length=40)]
    language: str | None = None
    text: Source | None = None


class Blocks(BaseModel):
    """Hold the blocks of a document."""

    model_config = ConfigDict(extra="allow")

    blocks: list[Block] = Field(max_length=BLOCKS_MAX)


class BlockContent(BaseModel):
    """Hold a document in blocks, of which those of type `code` are run in their order."""

    model_config = _STRICT

    format: Literal["blockdoc"]
    value: Blocks

    @model_validator(mode="after")
    def _has_code(self) -> Self:
        code = [block for block in self.value.blocks if block.type == "code"]
        if not code:
            raise ValueError("the document has no block of type code")
        if other := {block.language for block in code} - {None, "python"}:
            raise ValueError(
                f"code in {sorted(map(str, other))[0][:40]!r} cannot be run; known: python"
            )
        if any(block.text is None for block in code):
            raise ValueError("a block of type code needs its text")
        if sum(len(block.text or "") for block in code) > SOURCE_CHARS_MAX:
            raise ValueError(f"the code has more than {SOURCE_CHARS_MAX} characters")
        return self

    def cells(self, file: str = FILE) -> list[dict[str, str]]:
        """Return the blocks of code, each under its number in the document."""
        stem = file.removesuffix(".py")
        return [
            {"file": f"{stem}-block-{number}.py", "source": block.text or ""}
            for number, block in enumerate(self.value.blocks, start=1)
            if block.type == "code"
        ]


Content = Annotated[PythonContent | BlockContent, Field(discriminator="format")]


class ObjectDependency(BaseModel):
    """Name another object of the document that this one needs."""

    model_config = _STRICT

    kind: Literal["object"]
    id: ObjectId


class DatasetDependency(BaseModel):
    """Name bytes that this object needs: a document or an artifact of the workspace."""

    model_config = _STRICT

    kind: Literal["dataset"]
    digest: Digest
    name: str | None = Field(
        default=None,
        pattern=FILE_NAME,
        description="what the cell finds it under, beside its digest",
    )

    @property
    def place(self) -> str:
        """Say where the cell finds it, below `datasets/`."""
        return self.name or self.digest.partition(":")[2]


Dependency = Annotated[ObjectDependency | DatasetDependency, Field(discriminator="kind")]


class Snapshot(BaseModel):
    """Pin an object that the cell depends on; with its content it is run before the cell."""

    model_config = _STRICT

    kind: Literal["object"]
    id: ObjectId
    content_digest: Digest
    content: Content | None = None
    resolved_runtime: dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _is_what_it_says(cls, given: Any) -> Any:
        """Compare the content as it was sent with its digest: that of its canonical JSON."""
        content = given.get("content") if isinstance(given, dict) else None
        if content is not None and digest_of(content) != given.get("content_digest"):
            raise ValueError("content_digest is not that of the content's canonical JSON")
        return given


class Runtime(BaseModel):
    """Say how the cell is run."""

    model_config = _STRICT

    language: Literal["python"] = "python"
    entrypoint: str = Field(default="main", pattern=rf"^{NAME}$")
    parameters: dict[str, Any] = Field(default_factory=dict)


class CodeObject(BaseModel):
    """Hold a code object of a document, in the words of the execution contract."""

    model_config = _STRICT

    type: Literal["code"] = "code"
    content: Content
    dependencies: list[Dependency] = Field(default=[], max_length=DEPENDENCIES_MAX)
    runtime: Runtime = Field(default_factory=Runtime)


class ExecuteInputs(BaseModel):
    """Give the source and its parameters, either plainly or as an object of a document."""

    model_config = _STRICT

    source: Source | None = Field(default=None, description="the cell; or give an object")
    parameters: dict[str, Any] = Field(
        default_factory=dict,
        description="names that the cell finds, and what `main` is called with",
    )
    entrypoint: str = Field(
        default="main",
        pattern=rf"^{NAME}$",
        description="the function whose value is the result; without it, the last expression's",
    )
    datasets: list[DatasetDependency] = Field(default=[], max_length=DEPENDENCIES_MAX)
    object: CodeObject | None = Field(default=None, description="the cell as an object")
    dependency_snapshots: list[Snapshot] = Field(default=[], max_length=DEPENDENCIES_MAX)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.source is None) == (self.object is None):
            raise ValueError("give either source or object")
        if self.object is not None and self.model_fields_set & {
            "parameters",
            "entrypoint",
            "datasets",
        }:
            raise ValueError(
                "an object has its parameters and entrypoint in its runtime,"
                " and its datasets among its dependencies"
            )
        return self

    @model_validator(mode="after")
    def _each_in_its_place(self) -> Self:
        among = self.object.dependencies if self.object is not None else self.datasets
        places = [one.place for one in among if isinstance(one, DatasetDependency)]
        if len(set(places)) < len(places):
            raise ValueError("two datasets have the same name")
        return self

    @model_validator(mode="after")
    def _all_pinned(self) -> Self:
        pinned = {snapshot.id for snapshot in self.dependency_snapshots}
        for dependency in self.object.dependencies if self.object is not None else []:
            if isinstance(dependency, ObjectDependency) and dependency.id not in pinned:
                raise ValueError("a dependency of kind object has no entry in dependency_snapshots")
        return self

    @model_serializer
    def _plain(self) -> dict[str, Any]:
        """Say the same thing in one way: two spellings of one cell are the same work."""
        if self.object is None:
            cells: list[dict[str, str]] = [{"file": FILE, "source": self.source or ""}]
            runtime = Runtime(entrypoint=self.entrypoint, parameters=self.parameters)
            datasets, objects = self.datasets, []
        else:
            cells = self.object.content.cells()
            runtime = self.object.runtime
            needed = self.object.dependencies
            datasets = [one for one in needed if isinstance(one, DatasetDependency)]
            objects = [one.id for one in needed if isinstance(one, ObjectDependency)]
        return {
            "cells": cells,
            "parameters": runtime.parameters,
            "entrypoint": runtime.entrypoint,
            "datasets": [one.model_dump(include={"digest", "name"}) for one in datasets],
            "objects": objects,
            "snapshots": [
                {
                    "id": one.id,
                    "content_digest": one.content_digest,
                    "resolved_runtime": one.resolved_runtime,
                    "cells": one.content.cells(f"object-{number}.py") if one.content else [],
                }
                for number, one in enumerate(self.dependency_snapshots, start=1)
            ],
        }


class ExecuteOutputs(OutputSpec):
    """Say which formats are wanted of figures and tables; all are made if nothing is said."""

    formats: list[Literal["json", "png", "svg", "pdf", "csv"]] = Field(default=[], max_length=5)  # type: ignore[assignment]


def environment_name() -> str:
    """Name the interpreter and all that is installed beside ADE: a cell may use any of it."""
    folders = [path for path in sys.path if os.path.isdir(path)]
    names = {name for path in folders for name in os.listdir(path) if name.endswith(".dist-info")}
    installed = hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:12]
    return f"python{sys.version_info.major}.{sys.version_info.minor}+{installed}"


class ObjectExecute(Kind):
    """Run a cell of Python; its value is the result."""

    name = "object_execute"
    inputs = ExecuteInputs
    output_spec = ExecuteOutputs
    entry = "ade_engine.entry.cell"
    language = "python"
    env_version = f"python-cell@2+{environment_name()}"

    async def prepare(self, asked: Asked, workroom: Workroom) -> Prepared:
        """Fetch the datasets by digest, before the walls close."""
        files: dict[str, Path] = {}
        places: dict[str, str] = {}
        for one in asked.inputs["datasets"]:
            place = f"datasets/{one['name'] or one['digest'].partition(':')[2]}"
            files[place] = await workroom.blob(asked.workspace_id, one["digest"])
            places |= {one["digest"]: place, one["name"] or one["digest"]: place}
        inputs = {**asked.inputs, "datasets": places, "formats": asked.output_spec["formats"]}
        return Prepared(inputs, files=files, warm=_warm(asked.inputs))


def _warm(inputs: dict[str, Any]) -> tuple[str, ...]:
    """Name the slow libraries that the code names, if they are there."""
    snapshots = [cell for one in inputs["snapshots"] for cell in one["cells"]]
    named = {
        word for cell in (*snapshots, *inputs["cells"]) for word in _HEAVY.findall(cell["source"])
    }
    found = [HEAVY[word] for word in sorted(named) if find_spec(word) is not None]
    return ("numpy", *found) if found else ()

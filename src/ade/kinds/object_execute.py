"""`object_execute`: run a cell of Python in the sandbox."""

import hashlib
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from packaging.requirements import InvalidRequirement, Requirement
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_serializer,
    model_validator,
)

from ade.domain.keys import digest as digest_of
from ade.kinds.document import ObjectId
from ade.kinds.kind import Digest, JobInputs, JobIO, Kind, OutputSpec, Prepared

SOURCE_CHARS_MAX = 500_000
BLOCKS_MAX = 1_000
DEPENDENCIES_MAX = 100
REQUIREMENTS_MAX = 50
NAME = r"[A-Za-z_][A-Za-z0-9_]{0,99}"
FILE_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.\- ]{0,99}$"
FILE = "cell.py"
# Libraries that are slow to import, and the modules that a zygote imports in advance for each.
# Frames of pandas are written as Parquet by polars.
SLOW_IMPORTS = {
    "matplotlib": ("ade_engine.preload.figures",),
    "pandas": ("pandas", "polars"),
    "polars": ("polars",),
}
_SLOW_IMPORT_NAME = re.compile(rf"\b({'|'.join(SLOW_IMPORTS)})\b")

_STRICT = ConfigDict(extra="forbid")
CellFormat = Literal["json", "png", "svg", "pdf", "csv", "parquet", "html", "jpg", "md", "tex"]
CellSource = Annotated[str, StringConstraints(max_length=SOURCE_CHARS_MAX)]


def _checked_requirement(text: str) -> str:
    """Accept a name with versions only: a path or an address would reach into this machine."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        raise ValueError(
            "give the name of a package, perhaps with versions, such as python-dateutil>=2.9"
        ) from None
    if requirement.url is not None:
        raise ValueError("a package may not come from an address")
    return str(requirement)


RequirementText = Annotated[
    str, StringConstraints(min_length=1, max_length=200), AfterValidator(_checked_requirement)
]


class PythonContent(BaseModel):
    """The source of a cell."""

    model_config = _STRICT

    format: Literal["python"]
    value: CellSource

    def cells(self, file: str = FILE) -> list[dict[str, str]]:
        """Return the cells, each with the file name that errors show."""
        return [{"file": file, "source": self.value}]


class DocumentBlock(BaseModel):
    """One block of a document; only blocks of type `code` are run."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, StringConstraints(min_length=1, max_length=40)]
    language: str | None = None
    text: CellSource | None = None


class BlockDocument(BaseModel):
    """The blocks of a document."""

    model_config = ConfigDict(extra="allow")

    blocks: list[DocumentBlock] = Field(max_length=BLOCKS_MAX)


class BlockContent(BaseModel):
    """A document in blocks; the blocks of type `code` are run in their order."""

    model_config = _STRICT

    format: Literal["blockdoc"]
    value: BlockDocument

    @model_validator(mode="after")
    def _has_code(self) -> Self:
        code = [block for block in self.value.blocks if block.type == "code"]
        if not code:
            raise ValueError("the document has no block of type code")
        if other := {block.language for block in code} - {None, "python"}:
            raise ValueError(
                f"code in {sorted(map(str, other))[0][:40]!r} cannot be run, only python"
            )
        if any(block.text is None for block in code):
            raise ValueError("a block of type code needs its text")
        if sum(len(block.text or "") for block in code) > SOURCE_CHARS_MAX:
            raise ValueError(f"the code has more than {SOURCE_CHARS_MAX} characters")
        return self

    def cells(self, file: str = FILE) -> list[dict[str, str]]:
        """Return the code blocks; file names contain the number of the block in the document."""
        stem = file.removesuffix(".py")
        return [
            {"file": f"{stem}-block-{number}.py", "source": block.text or ""}
            for number, block in enumerate(self.value.blocks, start=1)
            if block.type == "code"
        ]


Content = Annotated[PythonContent | BlockContent, Field(discriminator="format")]


class ObjectDependency(BaseModel):
    """Another object of the document that this one needs."""

    model_config = _STRICT

    kind: Literal["object"]
    id: ObjectId


class DatasetDependency(BaseModel):
    """A file that this object needs: a document or an artifact in the workspace."""

    model_config = _STRICT

    kind: Literal["dataset"]
    digest: Digest
    name: str | None = Field(
        default=None,
        pattern=FILE_NAME,
        description="the name under which the cell finds it; its digest works too",
    )

    @property
    def file_name(self) -> str:
        """Return the name of the file in `datasets/`."""
        return self.name or self.digest.partition(":")[2]


Dependency = Annotated[ObjectDependency | DatasetDependency, Field(discriminator="kind")]


class DependencySnapshot(BaseModel):
    """A pinned version of an object that the cell depends on; its content runs before the cell."""

    model_config = _STRICT

    kind: Literal["object"]
    id: ObjectId
    content_digest: Digest
    content: Content | None = None
    resolved_runtime: dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _content_has_digest(cls, given: Any) -> Any:
        """Compare content_digest with the digest of the canonical JSON of the content as sent."""
        content = given.get("content") if isinstance(given, dict) else None
        if content is not None and digest_of(content) != given.get("content_digest"):
            raise ValueError(
                "content_digest is not the digest of the canonical JSON of the content"
            )
        return given


class Runtime(BaseModel):
    """How the cell is run."""

    model_config = _STRICT

    language: Literal["python"] = "python"
    entrypoint: str = Field(default="main", pattern=rf"^{NAME}$")
    parameters: dict[str, Any] = Field(default_factory=dict)
    requirements: list[RequirementText] = Field(default=[], max_length=REQUIREMENTS_MAX)


class ExecutableObject(BaseModel):
    """A code object of a document, with its dependencies and its runtime."""

    model_config = _STRICT

    type: Literal["code"] = "code"
    content: Content
    dependencies: list[Dependency] = Field(default=[], max_length=DEPENDENCIES_MAX)
    runtime: Runtime = Field(default_factory=Runtime)


class ExecuteInputs(BaseModel):
    """The cell and its parameters, as plain source or as an object of a document."""

    model_config = _STRICT

    source: CellSource | None = Field(
        default=None, description="the cell; alternatively give an object"
    )
    parameters: dict[str, Any] = Field(
        default_factory=dict,
        description="variables of the cell, and the arguments of `main`",
    )
    entrypoint: str = Field(
        default="main",
        pattern=rf"^{NAME}$",
        description="the function that returns the result; a cell that does not define `main`, or "
        "calls it itself, is a script, and its result is the value of the last expression",
    )
    datasets: list[DatasetDependency] = Field(default=[], max_length=DEPENDENCIES_MAX)
    requirements: list[RequirementText] = Field(
        default=[],
        max_length=REQUIREMENTS_MAX,
        description="packages that the cell needs, such as `python-dateutil>=2.9`; without them it"
        " runs with those of ADE's own environment",
    )
    object: ExecutableObject | None = Field(
        default=None, description="the cell as an object of a document"
    )
    dependency_snapshots: list[DependencySnapshot] = Field(default=[], max_length=DEPENDENCIES_MAX)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.source is None) == (self.object is None):
            raise ValueError("give either source or object")
        if self.object is not None and self.model_fields_set & {
            "parameters",
            "entrypoint",
            "datasets",
            "requirements",
        }:
            raise ValueError(
                "an object has its parameters, entrypoint and requirements in its runtime,"
                " and its datasets among its dependencies"
            )
        return self

    @model_validator(mode="after")
    def _unique_dataset_names(self) -> Self:
        needed = self.object.dependencies if self.object is not None else self.datasets
        names = [one.file_name for one in needed if isinstance(one, DatasetDependency)]
        if len(set(names)) < len(names):
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
    def _normalized(self) -> dict[str, Any]:
        """Return one form for both notations of a cell, so that duplicates are found."""
        if self.object is None:
            cells: list[dict[str, str]] = [{"file": FILE, "source": self.source or ""}]
            runtime = Runtime(
                entrypoint=self.entrypoint,
                parameters=self.parameters,
                requirements=self.requirements,
            )
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
            "requirements": sorted(set(runtime.requirements)),
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
    """The formats of figures, tables and other outputs.

    The default is PNG for figures, CSV and Parquet for tables, and every other format that a value
    offers.
    """

    formats: list[CellFormat] = Field(default=[], max_length=10)  # type: ignore[assignment]


def environment_name() -> str:
    """Identify the interpreter and all installed packages, since a cell may use any of them."""
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
    env_version = f"python-cell@3+{environment_name()}"

    async def prepare(self, job: JobInputs, job_io: JobIO) -> Prepared:
        """Fetch the datasets by digest, and install the requirements."""
        files: dict[str, Path] = {}
        paths: dict[str, str] = {}
        for one in job.inputs["datasets"]:
            path = f"datasets/{one['name'] or one['digest'].partition(':')[2]}"
            files[path] = await job_io.blob(job.workspace_id, one["digest"])
            paths |= {one["digest"]: path, one["name"] or one["digest"]: path}
        inputs = {**job.inputs, "datasets": paths, "formats": job.output_spec["formats"]}
        required = job.inputs["requirements"]
        if not required:
            return Prepared(inputs, files=files, preload=_slow_imports(job.inputs))
        found = await job_io.packages(required)
        return Prepared(
            inputs,
            files=files,
            environment=found.environment,
            preload=_slow_imports(job.inputs) if found.environment is None else (),
            packages=found.packages,
        )


def _slow_imports(inputs: dict[str, Any]) -> tuple[str, ...]:
    """Return what to import in advance for the slow libraries that the code mentions."""
    snapshots = [cell for one in inputs["snapshots"] for cell in one["cells"]]
    named = {
        word
        for cell in (*snapshots, *inputs["cells"])
        for word in _SLOW_IMPORT_NAME.findall(cell["source"])
    }
    found = {
        module: None
        for word in sorted(named)
        if find_spec(word) is not None
        for module in SLOW_IMPORTS[word]
    }
    return ("numpy", *found) if found else ()

"""Drafts: the files of a configuration while it is edited.

Who writes may say what it believes to be there (`only_if`): if two people edit the same file, the
second one is told instead of undoing what the first one did.
"""

from typing import NamedTuple

from sqlalchemy import and_, delete, insert, select
from sqlalchemy.sql.elements import ColumnElement

from ade.domain.errors import Conflict, NotFound, PayloadTooLarge, PreconditionFailed
from ade.domain.file_names import refuse_clashes
from ade.domain.keys import digest as digest_of
from ade.store.library.configurations import Configuration, Configurations
from ade.store.schema import draft_files
from ade.store.statements import Statement

FILES_MAX = 1000
DRAFT_BYTES_MAX = 32 * 1024 * 1024
ABSENT = "absent"
LIST = Statement(
    lambda d, g: select(draft_files.c.path, draft_files.c.digest, draft_files.c.size_bytes).where(
        draft_files.c.workspace_id == g["workspace_id"],
        draft_files.c.configuration_id == g["configuration_id"],
    ),
    ("workspace_id", "configuration_id"),
    many=False,
)


class File(NamedTuple):
    """Hold one file of a draft or of a version."""

    path: str
    digest: str
    size_bytes: int


def manifest_digest(files: list[File]) -> str:
    """Name a set of files by what is in it."""
    return digest_of([[file.path, file.digest] for file in sorted(files)])


class Drafts(Configurations):
    """Read and change drafts."""

    async def add_configuration(
        self, workspace_id: str, name: str, files: list[File], *, quota_bytes: int = 0
    ) -> Configuration:
        """Make a configuration with a first draft."""

        def add() -> Configuration:
            self._begin_to_store(workspace_id)
            new = self._insert_configuration(workspace_id, name)
            self._write_draft(new, files, quota_bytes)
            return new

        return await self._run(add)

    async def draft(self, workspace_id: str, configuration_id: str) -> list[File]:
        """List the files of a draft in the order of their paths."""
        return await self._run(
            lambda: self._draft(self._configuration(workspace_id, configuration_id)), write=False
        )

    def _draft(self, configuration: Configuration) -> list[File]:
        rows = self._known(LIST, configuration.workspace_id, configuration.id)
        return sorted(File(*row) for row in rows)

    async def find_file(self, workspace_id: str, configuration_id: str, path: str) -> File:
        """Find one file of a draft, or raise NotFound."""
        for file in await self.draft(workspace_id, configuration_id):
            if file.path == path:
                return file
        raise NotFound("There is no such file in the draft.")

    async def put_file(
        self,
        workspace_id: str,
        configuration_id: str,
        file: File,
        *,
        only_if: str | None = None,
        quota_bytes: int = 0,
    ) -> bool:
        """Write one file of a draft; tell whether there was none of this path before."""

        def put() -> bool:
            self._begin_to_store(workspace_id)
            configuration = self._configuration(workspace_id, configuration_id)
            present = {known.path: known for known in self._draft(configuration)}
            before = present.get(file.path)
            _refuse_unless(only_if, before)
            self._write_draft(
                configuration, [*(present | {file.path: file}).values()], quota_bytes, [file]
            )
            return before is None

        return await self._run(put)

    async def delete_file(
        self, workspace_id: str, configuration_id: str, path: str, *, only_if: str | None = None
    ) -> None:
        """Take one file out of a draft, or raise NotFound."""

        def take_out() -> None:
            self._begin_to_store(workspace_id)
            configuration = self._configuration(workspace_id, configuration_id)
            present = {known.path: known for known in self._draft(configuration)}
            if path not in present:
                raise NotFound("There is no such file in the draft.")
            _refuse_unless(only_if, present[path])
            self._do(delete(draft_files).where(_of(configuration), draft_files.c.path == path))

        await self._run(take_out)

    async def replace_draft(
        self,
        workspace_id: str,
        configuration_id: str,
        files: list[File],
        *,
        only_if: str | None = None,
        quota_bytes: int = 0,
    ) -> None:
        """Put other files in the place of a whole draft; `only_if` is the digest of the draft."""

        def replace() -> None:
            self._begin_to_store(workspace_id)
            configuration = self._configuration(workspace_id, configuration_id)
            if only_if not in (None, manifest_digest(self._draft(configuration))):
                raise PreconditionFailed("The draft was changed meanwhile; read it again.")
            self._do(delete(draft_files).where(_of(configuration)))
            self._write_draft(configuration, files, quota_bytes)

        await self._run(replace)

    def _write_draft(
        self,
        configuration: Configuration,
        wanted: list[File],
        quota_bytes: int,
        changed: list[File] | None = None,
    ) -> None:
        """Check what the whole draft will be, and write the files of it that change."""
        refuse_clashes(file.path for file in wanted)
        if len(wanted) > FILES_MAX:
            raise Conflict(f"A configuration has at most {FILES_MAX} files.")
        if sum(file.size_bytes for file in wanted) > DRAFT_BYTES_MAX:
            raise PayloadTooLarge(
                f"The files of a configuration have {DRAFT_BYTES_MAX // 1024 // 1024} MiB at most."
            )
        now = self._clock.now_us()
        for file in wanted if changed is None else changed:
            same = _of(configuration), draft_files.c.path == file.path
            self._do(delete(draft_files).where(*same))
            row = {"workspace_id": configuration.workspace_id, "configuration_id": configuration.id}
            self._do(insert(draft_files).values(**row, **file._asdict(), changed_at=now))
        self._refuse_above(configuration.workspace_id, quota_bytes)


def _refuse_unless(only_if: str | None, found: File | None) -> None:
    if only_if is not None and only_if != (ABSENT if found is None else found.digest):
        raise PreconditionFailed("The file was changed meanwhile; read it again.")


def _of(configuration: Configuration) -> ColumnElement[bool]:
    return and_(
        draft_files.c.workspace_id == configuration.workspace_id,
        draft_files.c.configuration_id == configuration.id,
    )

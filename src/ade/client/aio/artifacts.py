"""Files that jobs left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from ade.client.aio.driver import AsyncSession
from ade.client.answers.jobs import ArtifactAnswer
from ade.client.core.downloads import download
from ade.client.core.exchange import call_json, request_of
from ade.client.frames import read_frame
from ade.client.saved_files import place_for, written_whole


@dataclass(frozen=True)
class AsyncArtifact(ArtifactAnswer):
    """A file that a job left."""

    session: AsyncSession = field(repr=False, compare=False, kw_only=True)

    def pieces(self) -> AsyncIterator[bytes]:
        """Receive its bytes; DigestMismatch is raised at the end if they are others."""
        path = f"/api/v1/artifacts/{self.id}/content"
        return self.session.iterate(download(path, self.session.policy, self.digest))

    async def read(self) -> bytes:
        """Receive its bytes, checked against its digest."""
        return b"".join([piece async for piece in self.pieces()])

    async def download(self, path: str | PathLike[str] | None = None) -> Path:
        """Write it to a file, or into a folder under its own name; return where."""
        place = place_for(path, self.name)
        with written_whole(place) as file:
            async for piece in self.pieces():
                file.write(piece)
        return place

    async def url(self) -> str:
        """Make a link to it that needs no key, for a time that the server sets."""
        path = f"/api/v1/artifacts/{self.id}/url"
        made = await self.session.run(call_json(request_of("GET", path), self.session.policy))
        return str(made["url"])

    async def frame(self, library: str | None = None) -> Any:
        """Read it as a dataframe of `polars` or `pandas`, or of whichever is installed."""
        return read_frame(await self.read(), self.format or Path(self.name).suffix[1:], library)


async def list_artifacts(session: AsyncSession, job_id: str) -> list[AsyncArtifact]:
    """List the files that a job left."""
    request = request_of("GET", session.path(f"jobs/{job_id}/artifacts"))
    found = await session.run(call_json(request, session.policy))
    return [AsyncArtifact.of(one, session=session) for one in found]

"""Open the blobs where the settings say that they are."""

import asyncio
import hashlib

from ade.app.directory import Directory
from ade.artifacts.blobs import Blobs
from ade.artifacts.depot import Depot
from ade.artifacts.s3 import S3Remote
from ade.settings import Settings

MIB = 1024 * 1024
SECRET = "blobs"


async def open_blobs(settings: Settings, directory: Directory) -> Blobs:
    """Open the folder, and the object storage if there is one; raise Unavailable if it cannot be.

    The database is known to the storage by the digest of a secret that was made up in it.
    """
    if settings.blob_url is None:
        return Blobs(settings.blobs_dir)
    depot = Depot(await asyncio.to_thread(S3Remote, settings.blob_url))
    secret = await directory.secret(SECRET)
    await asyncio.to_thread(depot.claim, hashlib.sha256(secret).hexdigest())
    return Blobs(settings.blobs_dir, depot, settings.blob_cache_mb * MIB)

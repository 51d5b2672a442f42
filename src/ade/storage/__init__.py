"""Bytes by digest: uploaded documents, the files of configurations, the artifacts of jobs."""

from ade.storage.blob_keys import Blob
from ade.storage.blob_writer import BlobWriter
from ade.storage.blobs import Blobs

__all__ = ["Blob", "BlobWriter", "Blobs"]

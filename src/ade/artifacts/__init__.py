"""Bytes by digest: uploaded documents, the files of configurations, what jobs leave behind."""

from ade.artifacts.blobs import Blobs, Writing
from ade.artifacts.naming import Blob

__all__ = ["Blob", "Blobs", "Writing"]

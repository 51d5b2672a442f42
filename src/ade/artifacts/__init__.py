"""Bytes by digest: uploaded documents, the files of configurations, what jobs leave behind."""

from ade.artifacts.blobs import Blobs
from ade.artifacts.naming import Blob
from ade.artifacts.writing import Writing

__all__ = ["Blob", "Blobs", "Writing"]

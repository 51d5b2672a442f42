"""Bytes by digest: uploaded documents, the files of configurations, what jobs leave behind."""

from ade.artifacts.blobs import Blob, Blobs, Writing

__all__ = ["Blob", "Blobs", "Writing"]

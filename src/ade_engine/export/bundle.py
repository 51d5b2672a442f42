"""Write a document and everything that belongs to it into one ZIP archive.

```
manifest.json        every other file: path, role, digest, size, content type, object
document.json        the document as it was submitted; images are named by their digests
document.pdf, .html  the document for readers
objects/0001.md      the source of each object, by its number, and its notes and outputs
images/…             the images of objects, by digest
artifacts/…          further files of the workspace that were requested
```

The same document gives the same bytes: files are sorted, have a fixed date, and are stored without
compression, whose result depends on the version of the library.
"""

import base64
import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ade_engine.export.images import SUFFIX, media_type_of

MANIFEST, DOCUMENT = "manifest.json", "document.json"
SCHEMA_VERSION = "1.0"
DATE = (1980, 1, 1, 0, 0, 0)
# A regular file that its owner can write and everyone can read, as Unix tools unpack it.
MODE = 0o100644 << 16
UNIX = 3
CHUNK_BYTES = 1 << 20
CONTENT_TYPES = {
    "json": "application/json",
    "pdf": "application/pdf",
    "html": "text/html",
    "md": "text/markdown",
    "txt": "text/plain",
    "tex": "text/x-tex",
    "py": "text/x-python",
    "csv": "text/csv",
    **{suffix: media_type for media_type, suffix in SUFFIX.items()},
}
OTHER_CONTENT_TYPE = "application/octet-stream"
TEXT_SUFFIX = {"markdown": "md", "plain": "txt"}


@dataclass(frozen=True, slots=True)
class BundleFile:
    """A file of a bundle; `content` is its bytes or the path that they are read from."""

    path: str
    role: str
    content: bytes | Path
    object_id: str | None = None


def write_bundle(
    archive: Path,
    document: dict[str, Any],
    readable: list[Path],
    artifacts: list[dict[str, str]],
) -> int:
    """Write the archive; return how many files it has besides its manifest.

    `readable` are the document as PDF and HTML, `artifacts` files with their `name` and `file`.
    """
    files = {one.path: one for one in _files(document, readable, artifacts)}
    listed = []
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as bundle:
        for path in sorted(files):
            digest, size = _add(bundle, path, files[path].content)
            listed.append(_described(files[path], digest, size))
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "title": document.get("title") or "",
            "files": listed,
        }
        _add(bundle, MANIFEST, _json(manifest))
    return len(listed)


def _files(
    document: dict[str, Any], readable: list[Path], artifacts: list[dict[str, str]]
) -> Iterator[BundleFile]:
    for page in readable:
        yield BundleFile(page.name, "document", page)
    for one in artifacts:
        yield BundleFile(f"artifacts/{one['name']}", "artifact", Path(one["file"]))
    objects = []
    for number, submitted in enumerate(document["objects"], start=1):
        shown, images = _with_digests(submitted)
        objects.append(shown)
        yield from _sources(shown, f"objects/{number:04}")
        for path, content in images.items():
            yield BundleFile(path, "image", content, submitted.get("object_id"))
    yield BundleFile(DOCUMENT, "document", _json(document | {"objects": objects}))


def _with_digests(submitted: dict[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return an object that names its images by digest, and the images by their paths."""
    content, images = dict(submitted["content"]), {}
    if submitted["type"] == "image":
        content, path, pixels = _image(content)
        images[path] = pixels
    if submitted["type"] == "code" and content.get("outputs"):
        shown = []
        for one in content["outputs"].get("images") or []:
            described, path, pixels = _image(one)
            shown.append(described)
            images[path] = pixels
        content["outputs"] = content["outputs"] | {"images": shown}
    return submitted | {"content": content}, images


def _image(content: dict[str, Any]) -> tuple[dict[str, Any], str, bytes]:
    pixels = (
        Path(content["file"]).read_bytes()
        if content.get("file")
        else base64.b64decode("".join(content["data"].split()))
    )
    media_type = media_type_of(pixels)
    assert media_type is not None  # the document was read before
    name = hashlib.sha256(pixels).hexdigest()
    described = {key: value for key, value in content.items() if key not in ("file", "data")}
    described |= {"digest": f"sha256:{name}", "media_type": media_type}
    return described, f"images/{name}.{SUFFIX[media_type]}", pixels


def _sources(submitted: dict[str, Any], stem: str) -> Iterator[BundleFile]:
    """Return the source of an object, as a file that other programs read."""
    content, object_id = submitted["content"], submitted.get("object_id")

    def file(suffix: str, text: str) -> BundleFile:
        encoded = text.encode("utf-8", "replace")
        return BundleFile(f"{stem}.{suffix}", "object", encoded, object_id)

    match submitted["type"]:
        case "text":
            yield file(TEXT_SUFFIX[content["format"]], content["value"])
        case "equation":
            yield file("tex", content["value"])
        case "code":
            yield file("py" if content["format"] == "python" else "txt", content["value"])
            outputs = content.get("outputs") or {}
            if any(value not in (None, "", []) for value in outputs.values()):
                yield file("outputs.json", _json(outputs).decode())
        case "table":
            yield file("csv", _csv(content))
    if submitted.get("notes"):
        yield file("notes.md", submitted["notes"])


def _csv(table: dict[str, Any]) -> str:
    """Return a table as RFC 4180 describes it; numbers are as they were submitted."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(table["columns"])
    for row in table["rows"]:
        filled = [*row, *[None] * (len(table["columns"]) - len(row))]
        writer.writerow([str(one).lower() if isinstance(one, bool) else one for one in filled])
    return text.getvalue()


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()


def _add(bundle: zipfile.ZipFile, path: str, content: bytes | Path) -> tuple[str, int]:
    """Add a file; return the digest and the size of its bytes."""
    info = zipfile.ZipInfo(path, DATE)
    info.external_attr, info.create_system = MODE, UNIX
    digest, size = hashlib.sha256(), 0
    source = content.open("rb") if isinstance(content, Path) else io.BytesIO(content)
    with source, bundle.open(info, "w") as member:
        while chunk := source.read(CHUNK_BYTES):
            member.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    return f"sha256:{digest.hexdigest()}", size


def _described(file: BundleFile, digest: str, size: int) -> dict[str, Any]:
    suffix = PurePosixPath(file.path).suffix.removeprefix(".").lower()
    described = {
        "path": file.path,
        "role": file.role,
        "digest": digest,
        "size_bytes": size,
        "content_type": CONTENT_TYPES.get(suffix, OTHER_CONTENT_TYPE),
    }
    return described | ({"object_id": file.object_id} if file.object_id else {})

"""A bundle has the document, its objects and its files, and a manifest that describes them all."""

import base64
import csv
import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.unit.engine.export.exported import (
    code,
    drawn,
    equation,
    export,
    image,
    plain,
    table,
    text,
)

from ade.kinds.document import DocumentContent
from ade_engine.channel import Channel
from ade_engine.entry import export as export_entry

BUNDLE = Path("artifacts/document.zip")
RED = drawn(4, 3)
OBJECTS = [
    text("# Title\n\nText", object_id="intro", notes="say hello"),
    plain("as it is"),
    equation("E = mc^2"),
    code("print(1)\n", {"stdout": "1\n", "images": [image(RED, caption="c")["content"]]}),
    table(["a", "b,c"], [[1.25, 'x "y"'], [True, None], [10_000]]),
    image(drawn(2, 2, "JPEG"), "image/jpeg", alt="red") | {"object_id": "photo"},
]


def bundled(*objects: dict[str, Any], **more: Any) -> dict[str, bytes]:
    """Export a bundle; return the files in it, after each was compared with the manifest."""
    export(*objects, formats=("bundle",), **more)
    with zipfile.ZipFile(BUNDLE) as archive:
        assert archive.testzip() is None
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files.pop("manifest.json"))
    assert manifest["schema_version"] == "1.0"
    assert [one["path"] for one in manifest["files"]] == sorted(files)
    for one in manifest["files"]:
        content = files[one["path"]]
        assert one["digest"] == "sha256:" + hashlib.sha256(content).hexdigest()
        assert one["size_bytes"] == len(content)
    return files


def test_a_bundle_has_each_object_as_a_file() -> None:
    files = bundled(*OBJECTS, title="All", notes=True)
    sources = {path: files[path] for path in files if path.startswith("objects/")}
    assert sources.pop("objects/0005.csv").decode() == (
        'a,"b,c"\r\n1.25,"x ""y"""\r\ntrue,\r\n10000,\r\n'
    )
    outputs = json.loads(sources.pop("objects/0004.outputs.json"))
    assert outputs["stdout"] == "1\n"
    assert sources == {
        "objects/0001.md": b"# Title\n\nText",
        "objects/0001.notes.md": b"say hello",
        "objects/0002.txt": b"as it is",
        "objects/0003.tex": b"E = mc^2",
        "objects/0004.py": b"print(1)\n",
    }
    red = hashlib.sha256(RED).hexdigest()
    assert files[f"images/{red}.png"] == RED
    assert [path.rpartition(".")[2] for path in files if path.startswith("images/")] in (
        ["png", "jpg"],
        ["jpg", "png"],
    )
    assert outputs["images"][0]["digest"] == f"sha256:{red}"


def test_the_document_of_a_bundle_can_be_submitted_again() -> None:
    files = bundled(*OBJECTS, title="All", authors=["Ada"], language="de", notes=True)
    document = DocumentContent.model_validate_json(files["document.json"])
    assert (document.title, document.language) == ("All", "de")
    assert [one.type for one in document.objects] == [one["type"] for one in OBJECTS]
    named = {Path(path).stem for path in files if path.startswith("images/")}
    digests = {one.split('"')[0] for one in files["document.json"].decode().split("sha256:")[1:]}
    assert digests == named


def test_speaker_notes_are_in_a_bundle_only_on_request() -> None:
    assert not any(b"say hello" in content for content in bundled(*OBJECTS).values())


def test_a_bundle_has_the_other_formats_or_html_alone() -> None:
    assert {"document.html", "document.json"} == {
        path for path in bundled(text("a")) if path.startswith("document")
    }
    assert sorted(path.name for path in Path("artifacts").iterdir()) == ["document.zip"]
    export(text("a"), formats=("pdf", "bundle"))
    names = zipfile.ZipFile(BUNDLE).namelist()
    assert "document.pdf" in names
    assert "document.html" not in names
    assert (
        zipfile.ZipFile(BUNDLE).read("document.pdf") == Path("artifacts/document.pdf").read_bytes()
    )


def test_requested_artifacts_are_in_a_bundle() -> None:
    Path("inputs").mkdir()
    Path("inputs/abc").write_bytes(b"1,2\n" * 1_000_000)
    inputs = {
        "formats": ["bundle"],
        "view_mode": "document",
        "include_speaker_notes": False,
        "document": {"objects": []},
        "artifacts": [{"digest": "sha256:abc", "name": "data.csv", "file": "inputs/abc"}],
    }
    export_entry.main(inputs, Channel(io.StringIO()))
    assert zipfile.ZipFile(BUNDLE).read("artifacts/data.csv") == b"1,2\n" * 1_000_000


def test_the_same_document_gives_the_same_bundle() -> None:
    bundled(*OBJECTS, title="Same")
    first = BUNDLE.read_bytes()
    bundled(*OBJECTS, title="Same")
    assert BUNDLE.read_bytes() == first
    for info in zipfile.ZipFile(BUNDLE).infolist():
        assert info.date_time == (1980, 1, 1, 0, 0, 0)
        assert info.compress_type == zipfile.ZIP_STORED


@pytest.mark.parametrize("value", ["\ud800", "é漢\u0000", "=1+1", "a\r\nb"])
def test_any_text_can_be_bundled(value: str) -> None:
    files = bundled(plain(value), table([value], [[value]]), code(value))
    [[head], [cell]] = csv.reader(io.StringIO(files["objects/0002.csv"].decode(), newline=""))
    assert head == cell == value.replace("\ud800", "?")
    assert json.loads(files["document.json"])["objects"][0]["content"]["value"] == value


def test_an_image_is_in_a_bundle_once() -> None:
    files = bundled(*[image(RED)] * 3)
    assert sum(path.startswith("images/") for path in files) == 1
    assert base64.b64encode(RED) not in files["document.json"]

"""Export documents in the folder of a test, and inspect the result."""

import base64
import io
import json
import zlib
from pathlib import Path
from typing import Any

import typst
from PIL import Image

from ade_engine.channel import Channel
from ade_engine.entry import export as export_entry
from ade_engine.entry import thumbnail as thumbnail_entry
from ade_engine.export.fonts import embedded_fonts
from ade_engine.export.pages import draw_page

LAYOUT = Path("layout")
PDF, HTML = Path("artifacts/document.pdf"), Path("artifacts/document.html")


def text(value: str, **more: Any) -> dict[str, Any]:
    """Return an object of Markdown."""
    return {"type": "text", "content": {"format": "markdown", "value": value}, **more}


def plain(value: str, **more: Any) -> dict[str, Any]:
    """Return an object of plain text."""
    return {"type": "text", "content": {"format": "plain", "value": value}, **more}


def equation(latex: str, **more: Any) -> dict[str, Any]:
    """Return an object of a formula."""
    return {"type": "equation", "content": {"format": "latex", "value": latex}, **more}


def code(source: str, outputs: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return an object of code."""
    content = {"format": "python", "value": source, "outputs": outputs or {}}
    return {"type": "code", "content": content, **more}


def table(columns: list[str], rows: list[list[Any]], **more: Any) -> dict[str, Any]:
    """Return an object of a table."""
    return {"type": "table", "content": {"columns": columns, "rows": rows, **more}}


def image(content: bytes, media_type: str = "image/png", **more: Any) -> dict[str, Any]:
    """Return an object of an image with its bytes."""
    data = base64.b64encode(content).decode()
    return {"type": "image", "content": {"data": data, "media_type": media_type, **more}}


def drawn(width: int, height: int, kind: str = "PNG", color: str = "#cc2200") -> bytes:
    """Return the bytes of an image of one colour."""
    stream = io.BytesIO()
    Image.new("RGB", (width, height), color).save(stream, kind)
    return stream.getvalue()


def export(
    *objects: dict[str, Any],
    formats: tuple[str, ...] = ("pdf",),
    view_mode: str = "document",
    notes: bool = False,
    **document: Any,
) -> dict[str, Any]:
    """Export a document in the current folder; return the result."""
    inputs = {
        "formats": list(formats),
        "view_mode": view_mode,
        "include_speaker_notes": notes,
        "document": {"objects": list(objects), **document},
    }
    return export_entry.main(inputs, Channel(io.StringIO()))


def thumbnail(**inputs: Any) -> dict[str, Any]:
    """Draw thumbnails in the current folder; return the result."""
    given = {"view_mode": "document", "page": 1, "background": "white", **inputs}
    return thumbnail_entry.main(given, Channel(io.StringIO()))


def set_texts(template: str = "document.typ") -> str:
    """Return the texts on the pages of the last export, in no particular order."""
    compiler = typst.Compiler(LAYOUT / template, root=Path(), sys_inputs={"fill": "white"})
    found: list[str] = []
    for selector in ("title", "par", "heading", "raw", "table", "figure.caption"):
        _gather(json.loads(compiler.query(selector)), found)
    return "\n".join(found)


def _gather(value: Any, found: list[str]) -> None:
    if isinstance(value, dict):
        if value.get("func") in {"text", "raw"} and isinstance(value.get("text"), str):
            found.append(value["text"])
        for inner in value.values():
            _gather(inner, found)
    elif isinstance(value, list):
        for inner in value:
            _gather(inner, found)


def page_picture(page: int, *, width: int = 320, height: int = 180) -> Image.Image:
    """Draw a page of the last PDF."""
    png = draw_page(LAYOUT, PDF.read_bytes(), page, width, height, embedded_fonts(), fill="white")
    return Image.open(io.BytesIO(png)).convert("RGB")


def png_of_zeros(width: int, height: int) -> bytes:
    """Return a PNG that is small on disk, whatever size its header claims."""

    def chunk(name: bytes, content: bytes) -> bytes:
        check = zlib.crc32(name + content).to_bytes(4, "big")
        return len(content).to_bytes(4, "big") + name + content + check

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x00\x00\x00\x00"
    body = zlib.compress(bytes(100_000))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    )

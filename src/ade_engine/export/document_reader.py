"""Build the tree of a document from its submission: one item per object, in order."""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ade_engine.export import document_tree as tree
from ade_engine.export import markdown
from ade_engine.export.characters import clean, one_line
from ade_engine.export.document_tree import Alignment, Block, Blocks, DocumentTree, Inlines, Item
from ade_engine.export.export_errors import BadImage, DocumentTooLarge
from ade_engine.export.export_warnings import ExportWarnings
from ade_engine.export.images import Image, inspect_image
from ade_engine.export.numbers import is_number, number_texts, plain_number

# Each paragraph, list item and table cell takes about 20 KB of memory while Typst runs.
PIECES_MAX = 20_000
PIXELS_MAX = 100_000_000
_NUMBER = re.compile(r"[+\-\N{MINUS SIGN}]?\d[\d.,'\s]*(?:[eE][+-]?\d+)?\s?%?")


def read_document(
    submitted: dict[str, Any], folder: Path, warnings: ExportWarnings
) -> DocumentTree:
    """Return the tree of a document; write the images in its submission to the folder."""
    language = submitted.get("language") or "en"
    reader = _Reader(folder, language, warnings)
    items = tuple(
        reader.item(content, number) for number, content in enumerate(submitted["objects"], start=1)
    )
    return DocumentTree(
        title=one_line(submitted.get("title") or ""),
        authors=tuple(one_line(author) for author in submitted.get("authors") or []),
        language=language,
        items=items,
    )


class _Reader:
    """Read objects; count images, pixels and pieces against their limits."""

    def __init__(self, folder: Path, language: str, warnings: ExportWarnings) -> None:
        self._folder = folder
        self._language = language
        self._warnings = warnings
        self._images = 0
        self._pixels = 0
        self._pieces = 0

    def item(self, submitted: dict[str, Any], number: int) -> Item:
        """Read one object; one without an id is named by its number."""
        name = submitted.get("object_id") or f"number {number}"
        slide = submitted.get("slide")
        item = Item(
            name=name,
            kind=submitted["type"],
            blocks=tuple(self._blocks(submitted["type"], submitted["content"], name)),
            notes=self._text("markdown", submitted.get("notes") or "", name),
            slide=None if slide is None else str(slide),
        )
        self._pieces += _pieces((*item.blocks, *item.notes))
        if self._pieces > PIECES_MAX:
            raise DocumentTooLarge(
                f"There are more than {PIECES_MAX:,} paragraphs, list items and table cells",
                object_id=name,
            )
        return item

    def _blocks(self, kind: str, content: dict[str, Any], name: str) -> Iterator[Block]:
        match kind:
            case "text":
                yield from self._text(content["format"], content["value"], name)
            case "equation":
                yield tree.FormulaBlock(clean(content["value"]).strip())
            case "code":
                yield tree.CodeBlock(clean(content["value"]).rstrip("\n"), content["format"])
                yield from self._outputs(content.get("outputs") or {}, name)
            case "image":
                yield tree.ImageBlock(
                    image=self._image(content, name),
                    alt=one_line(content.get("alt") or ""),
                    caption=one_line(content.get("caption") or ""),
                    width_percent=content.get("width_percent"),
                )
            case "table":
                yield _table(content, self._language)

    def _text(self, format: str, value: str, name: str) -> Blocks:
        if format == "plain":
            return markdown.plain(clean(value))
        return markdown.parse(
            clean(value), lambda code, message: self._warnings.add(code, f"{message}.", name)
        )

    def _outputs(self, outputs: dict[str, Any], name: str) -> Iterator[Block]:
        for stream in ("stdout", "stderr"):
            if text := clean(outputs.get(stream) or "").rstrip():
                yield tree.OutputBlock(stream, text)
        if outputs.get("result_json") is not None:
            result = json.dumps(outputs["result_json"], ensure_ascii=False, indent=2)
            yield tree.OutputBlock("result", clean(result))
        for image in outputs.get("images") or []:
            yield tree.ImageBlock(
                image=self._image(image, name),
                alt=one_line(image.get("alt") or ""),
                caption=one_line(image.get("caption") or ""),
                width_percent=image.get("width_percent"),
            )
        if outputs.get("error"):
            yield tree.OutputBlock("error", clean(_error(outputs["error"])).rstrip())

    def _image(self, content: dict[str, Any], name: str) -> Image:
        """Return an image from the inputs of the job, or from the bytes in the submission."""
        if content.get("file"):
            path = Path(content["file"])
        else:
            self._images += 1
            path = self._folder / f"image-{self._images}"
            path.write_bytes(_decoded(content["data"], name))
        image = inspect_image(path, content.get("media_type"), name)
        self._pixels += image.width_pixels * image.height_pixels
        if self._pixels > PIXELS_MAX:
            raise BadImage(
                f"The images have more than {PIXELS_MAX:,} pixels together; make them smaller",
                object_id=name,
            )
        return image


def _decoded(data: str, name: str) -> bytes:
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        raise BadImage("The data of the image is not base64", object_id=name) from None


def _error(error: str | dict[str, Any]) -> str:
    if isinstance(error, str):
        return error
    head = ": ".join(part for part in (error.get("code"), error.get("message")) if part)
    traceback = (error.get("details") or {}).get("traceback")
    return f"{traceback.rstrip()}\n{head}" if isinstance(traceback, str) else head


def _table(content: dict[str, Any], language: str) -> tree.TableBlock:
    names, rows = content["columns"], content["rows"]
    columns = [_column(rows, at) for at in range(len(names))]
    formats, alignment = (_each(content.get(key), names) for key in ("number_format", "alignment"))
    cells = [
        _cells(column, format, language) for column, format in zip(columns, formats, strict=True)
    ]
    return tree.TableBlock(
        columns=tuple(markdown.lines(clean(name).strip()) for name in names),
        rows=tuple(zip(*cells, strict=True)),
        alignment=tuple(
            _alignment(column) if side == "auto" else side
            for column, side in zip(columns, alignment, strict=True)
        ),
        caption=one_line(content.get("caption") or ""),
    )


def _each(requested: list[Any] | None, names: list[str]) -> list[Any]:
    """Return what is requested for each column; the rest is automatic."""
    listed = requested or []
    return [*listed, *["auto"] * (len(names) - len(listed))]


def _column(rows: list[list[Any]], at: int) -> list[Any]:
    return [row[at] if at < len(row) else None for row in rows]


def _cells(column: list[Any], format: str, language: str) -> list[Inlines]:
    if format == "plain":
        texts = [plain_number(value) if is_number(value) else None for value in column]
    else:
        texts = number_texts(column, language)
    return [
        _cell(value) if text is None else (tree.LiteralText(text),)
        for value, text in zip(column, texts, strict=True)
    ]


def _cell(value: Any) -> Inlines:
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return markdown.lines(clean(value).strip())
    return (tree.LiteralText(json.dumps(value)),)


def _alignment(column: list[Any]) -> Alignment:
    """Return right for a column of numbers and left for any other."""
    values = [value for value in column if value not in (None, "")]
    return "right" if values and all(map(_looks_like_number, values)) else "left"


def _looks_like_number(value: Any) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value.strip()) is not None
    return is_number(value)


def _pieces(blocks: Blocks) -> int:
    """Count the parts that Typst lays out separately."""
    count = len(blocks)
    for block in blocks:
        match block:
            case tree.TableBlock(columns=columns, rows=rows):
                count += len(columns) * (len(rows) + 1)
            case tree.ListBlock(items=items):
                count += len(items) + sum(map(_pieces, items))
            case tree.QuoteBlock(blocks=inner):
                count += _pieces(inner)
    return count

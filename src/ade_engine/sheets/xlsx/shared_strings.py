"""Read the table of shared strings into one column of texts, followed by a null."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from ade_engine.errors import DamagedFile
from ade_engine.sheets.arrays import ByteArray, IntArray
from ade_engine.sheets.arrow_texts import slice_texts
from ade_engine.sheets.block_builder import with_null
from ade_engine.sheets.byte_words import words_from_each_byte
from ade_engine.sheets.fast_path_errors import FAST_PATH_ERRORS, FastPathUnsupported
from ade_engine.sheets.read_limits import ReadLimits
from ade_engine.sheets.safe_xml import Attributes, parse, plain_name
from ade_engine.sheets.xlsx.unescape import decode_escape, needs_unescape, unescape
from ade_engine.sheets.xlsx.xml_chunks import Surroundings, element_chunks, find_tags

WHERE = "shared strings"


def read_strings(stream: Iterable[bytes], limits: ReadLimits) -> pl.Series:
    """Read the whole table fast, or raise `FastPathUnsupported`: then use `walk_strings`."""
    try:
        pieces = element_chunks(stream, b"sst", b"si", Surroundings(), limits)
        return with_null([_scan(xml) for xml in pieces])
    except FAST_PATH_ERRORS as error:
        raise FastPathUnsupported from error


def walk_strings(stream: Iterable[bytes]) -> pl.Series:
    """Read the whole table, however its XML is written."""
    return with_null([pl.Series(_walk(stream), dtype=pl.String)])


def _scan(xml: bytes) -> pl.Series:
    buffer = np.frombuffer(xml, np.uint8)
    opens, closes = find_tags(buffer)
    names, seconds = buffer[opens + 1], buffer[opens + 2]
    if ((names == ord("!")) | (names == ord("?"))).any():
        raise FastPathUnsupported
    items = np.flatnonzero((names == ord("s")) & (seconds == ord("i")))
    ends_name = (seconds == ord(">")) | (seconds == ord(" ")) | (seconds == ord("/"))
    pieces = _without_phonetic(
        names, buffer, opens, np.flatnonzero((names == ord("t")) & ends_name)
    )
    starts = closes[pieces] + 1
    empty = buffer[closes[pieces] - 1] == ord("/")
    ends = np.where(empty, starts, opens[np.minimum(pieces + 1, len(opens) - 1)])
    if ((buffer[ends + 1] != ord("/")) & ~empty).any():
        raise FastPathUnsupported
    try:
        found = slice_texts(xml, words_from_each_byte(xml), starts, ends)
    except pl.exceptions.PolarsError as error:
        raise DamagedFile("a text is not UTF-8", where=WHERE) from error
    # Adding "" copies the texts, so that they do not keep the XML around them in memory.
    found = unescape(found) if needs_unescape(xml) else found + ""
    return _by_item(found, np.searchsorted(items, pieces, side="right") - 1, len(items))


def _without_phonetic(
    names: ByteArray, buffer: ByteArray, opens: IntArray, pieces: IntArray
) -> IntArray:
    """Leave out the phonetic reading of a text, which is in <rPh>."""
    if not len(pieces):
        return pieces
    runs = (names == ord("r")) & (buffer[opens + 2] == ord("P")) & (buffer[opens + 3] == ord("h"))
    if not runs.any():
        return pieces
    runs &= buffer[opens + 4] != ord("o")  # <rPhonetic...> is not <rPh>
    ends = (names == ord("/")) & (buffer[opens + 2] == ord("r")) & (buffer[opens + 4] == ord("h"))
    depth = np.cumsum(runs.astype(np.int64) - ends.astype(np.int64))
    kept: IntArray = pieces[depth[pieces] == 0]
    return kept


def _by_item(found: pl.Series, items: IntArray, count: int) -> pl.Series:
    """Join the runs of rich texts; most texts have one run only."""
    if len(items) == count and (items == np.arange(count)).all():
        return found
    frame = pl.DataFrame({"item": items, "text": found})
    joined = frame.group_by("item", maintain_order=True).agg(pl.col("text").str.join(""))
    texts = pl.Series([""], dtype=pl.String).new_from_index(0, count)
    return texts.scatter(joined["item"], joined["text"]) if count else texts


def _walk(stream: Iterable[bytes]) -> list[str]:
    items: list[str] = []
    pieces: list[str] = []
    inside = {"si": 0, "t": 0, "rPh": 0}

    def start(name: str, attributes: Attributes) -> None:
        name = plain_name(name)
        if name in inside:
            inside[name] += 1

    def end(name: str) -> None:
        name = plain_name(name)
        if name in inside:
            inside[name] -= 1
        if name == "si":
            items.append(decode_escape("".join(pieces)))
            pieces.clear()

    def text(data: str) -> None:
        if inside["t"] and not inside["rPh"]:
            pieces.append(data)

    parse(stream, start, end, text, where=WHERE)
    return items

"""Parse XML that strangers wrote: no document types, so no entities, no files, no bombs of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from xml.parsers import expat

from ade_engine.errors import DamagedFile, UnsafeFile

Attributes = dict[str, str]
Start = Callable[[str, Attributes], None]
End = Callable[[str], None]
Text = Callable[[str], None]


def plain_name(name: str) -> str:
    """Leave out the prefix of a name: prefixes differ from program to program."""
    return name.rpartition(":")[2]


def attribute(attributes: Attributes, name: str, default: str = "") -> str:
    """Give an attribute, whatever its prefix is."""
    if name in attributes:
        return attributes[name]
    return next((v for key, v in attributes.items() if plain_name(key) == name), default)


class Feed:
    """Call back for every element and text, with names as they are written."""

    def __init__(
        self,
        start: Start | None = None,
        end: End | None = None,
        text: Text | None = None,
        *,
        where: str = "",
    ) -> None:
        self._where = where
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.StartElementHandler = start
        self._parser.EndElementHandler = end
        self._parser.CharacterDataHandler = text

    def __call__(self, piece: bytes, *, last: bool = False) -> None:
        """Take the next piece."""
        try:
            self._parser.Parse(piece, last)
        except expat.ExpatError as error:
            message = f"the XML breaks off or is wrong in line {error.lineno}"
            raise DamagedFile(message, where=self._where) from None
        except LookupError:
            message = "the XML has an encoding that nobody knows"
            raise DamagedFile(message, where=self._where) from None
        except (ValueError, OverflowError):  # of whoever is called back
            message = "the XML holds what cannot be understood"
            raise DamagedFile(message, where=self._where) from None

    def close(self) -> None:
        """Say that nothing follows."""
        self(b"", last=True)
        self._parser.StartElementHandler = None  # they point back to whoever holds this
        self._parser.EndElementHandler = None
        self._parser.CharacterDataHandler = None

    def _refuse(self, *_: object) -> None:
        message = "the XML declares a document type, which can hide files and endless texts"
        raise UnsafeFile(message, where=self._where)


def parse(
    pieces: Iterable[bytes],
    start: Start | None = None,
    end: End | None = None,
    text: Text | None = None,
    *,
    where: str = "",
) -> None:
    """Feed a whole document."""
    feed = Feed(start, end, text, where=where)
    for piece in pieces:
        feed(piece)
    feed.close()

"""Parse untrusted XML: document types are rejected, so there are no entities and no XML bombs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from xml.parsers import expat

from ade_engine.errors import DamagedFile, UnsafeFile

Attributes = dict[str, str]
Start = Callable[[str, Attributes], None]
End = Callable[[str], None]
Text = Callable[[str], None]


def plain_name(name: str) -> str:
    """Return a name without its namespace prefix, which differs from program to program."""
    return name.rpartition(":")[2]


def attribute(attributes: Attributes, name: str, default: str = "") -> str:
    """Return an attribute, ignoring its namespace prefix."""
    if name in attributes:
        return attributes[name]
    return next((v for key, v in attributes.items() if plain_name(key) == name), default)


class Feed:
    """Feed XML to expat in pieces, with callbacks for elements and text."""

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
        """Parse the next piece."""
        try:
            self._parser.Parse(piece, last)
        except expat.ExpatError as error:
            message = f"the XML is truncated or invalid in line {error.lineno}"
            raise DamagedFile(message, where=self._where) from None
        except LookupError:
            message = "the XML has an unknown encoding"
            raise DamagedFile(message, where=self._where) from None
        except (ValueError, OverflowError):  # raised by a callback
            message = "the XML holds a value that cannot be parsed"
            raise DamagedFile(message, where=self._where) from None

    def close(self) -> None:
        """Finish the document."""
        self(b"", last=True)
        self._parser.StartElementHandler = None  # break the reference cycle with the owner
        self._parser.EndElementHandler = None
        self._parser.CharacterDataHandler = None

    def _refuse(self, *_: object) -> None:
        message = (
            "the XML declares a document type, which can expand without end or read other files"
        )
        raise UnsafeFile(message, where=self._where)


def parse(
    pieces: Iterable[bytes],
    start: Start | None = None,
    end: End | None = None,
    text: Text | None = None,
    *,
    where: str = "",
) -> None:
    """Parse a whole document."""
    feed = Feed(start, end, text, where=where)
    for piece in pieces:
        feed(piece)
    feed.close()

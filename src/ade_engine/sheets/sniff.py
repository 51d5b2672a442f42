"""Detect the format of a file from its content; the file name is ignored."""

from __future__ import annotations

import mmap
import re
import zipfile
from typing import BinaryIO

from ade_engine.errors import DamagedFile, EmptyFile, EncryptedFile, OldWorkbook, UnknownFormat

HEAD_BYTES = 8_192
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

_HTML = re.compile(
    rb"<(!doctype\s+html|html|head|body|table|meta|style|script)[\s>/]", re.IGNORECASE
)
_XML_2003 = b"urn:schemas-microsoft-com:office:spreadsheet"
_OLD_EXCEL = {
    b"\x09\x00\x04\x00": "Excel 2",
    b"\x09\x02\x06\x00": "Excel 3",
    b"\x09\x04\x06\x00": "Excel 4",
    b"\x09\x08\x08\x00": "Excel 5 or Excel 95",
}
_OTHERS = {
    b"%PDF": "a PDF document",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"\x1f\x8b": "a gzip archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"{\\rtf": "a text document (RTF)",
    b"SQLite format 3": "a database",
    b"PAR1": "a Parquet file",
    b"\x7fELF": "a program",
    b"MZ": "a program",
}


def sniff(file: BinaryIO) -> str:
    """Return the format: `xlsx`, `xlsb`, `ods`, `xls`, `html`, `xml` or `text`."""
    file.seek(0)
    head = file.read(HEAD_BYTES)
    if not head or not head.strip(b"\0 \t\r\n\xef\xbb\xbf"):
        raise EmptyFile("the file is empty")
    if head.startswith(OLE):
        return _sniff_ole(file)
    if head.startswith(b"PK"):
        return _sniff_zip(file)
    for magic, program in _OLD_EXCEL.items():
        if head.startswith(magic):
            raise OldWorkbook(f"this is a workbook of {program}, whose format is not read")
    for magic, thing in _OTHERS.items():
        if head.startswith(magic):
            raise UnknownFormat(f"this is {thing}, not a spreadsheet")
    if zipfile.is_zipfile(file):  # other data may precede an archive
        return _sniff_zip(file)
    text = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    if text.startswith(b"<"):
        if _XML_2003 in text:
            return "xml"
        if _HTML.search(text):
            return "html"
        if text.startswith(b"<?xml"):
            raise UnknownFormat("this is XML, but not a workbook")
    return "text"


def _sniff_ole(file: BinaryIO) -> str:
    """Search for stream names, which are UTF-16 wherever the directory is."""
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content.find("EncryptedPackage".encode("utf-16-le")) >= 0:
            raise EncryptedFile("the workbook is protected by a password")
        if any(
            content.find(name.encode("utf-16-le") + b"\0\0") >= 0
            for name in ("Workbook", "Book", "WORKBOOK", "BOOK")
        ):
            return "xls"
    raise UnknownFormat("this is an old Office file, but not a workbook")


def _sniff_zip(file: BinaryIO) -> str:
    try:
        names = {name.replace("\\", "/").lstrip("/").lower() for name in _names(file)}
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise DamagedFile("the archive is truncated or damaged") from error
    if "xl/workbook.bin" in names:
        return "xlsb"
    if "content.xml" in names and "[content_types].xml" not in names:
        return "ods"
    if "[content_types].xml" in names or any(name.startswith("xl/") for name in names):
        if any(name.startswith(("word/", "ppt/")) for name in names):
            raise UnknownFormat("this is an Office document, but not a workbook")
        return "xlsx"
    raise UnknownFormat("this is a zip archive, but not a workbook")


def _names(file: BinaryIO) -> list[str]:
    return zipfile.ZipFile(file).namelist()

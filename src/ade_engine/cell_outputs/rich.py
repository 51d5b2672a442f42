"""What objects offer to notebooks: `_repr_html_` and its relatives, charts as specifications."""

import base64
import binascii
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ade_engine.cell_outputs.artifacts import ArtifactWriter, reason
from ade_engine.cell_outputs.clean_html import clean_html

SPECIFICATION_BYTES_MAX = 16 * 1024 * 1024


class RichType(NamedTuple):
    """Say how a kind of output is asked for and stored."""

    method: str
    mime: str
    ending: str
    kind: str


TYPES = (
    RichType("_repr_png_", "image/png", "png", "plot"),
    RichType("_repr_jpeg_", "image/jpeg", "jpg", "plot"),
    RichType("_repr_svg_", "image/svg+xml", "svg", "plot"),
    RichType("_repr_html_", "text/html", "html", "html"),
    RichType("_repr_latex_", "text/latex", "tex", "text"),
    RichType("_repr_markdown_", "text/markdown", "md", "text"),
)
BINARY = ("image/png", "image/jpeg")
CHARTS = ("plotly", "altair")
PLOTLY, VEGA_LITE = "application/vnd.plotly.v1+json", "application/vnd.vegalite.v5+json"


def is_rich(value: Any) -> bool:
    """Tell whether an object offers anything to notebooks."""
    kind = type(value)
    return (
        any(hasattr(kind, name) for name in ("_repr_mimebundle_", *(one.method for one in TYPES)))
        or kind.__module__.partition(".")[0] in CHARTS
    )


def keep_rich(value: Any, stem: str, writer: ArtifactWriter) -> list[str]:
    """Write what an object offers to notebooks; return the names of the files."""
    if isinstance(value, type):  # the methods of a class are those of its instances
        return []
    if (chart := _specification(value, writer)) is not None:
        mime, text = chart
        name = writer.write(
            stem, "json", lambda path: _write(path, text), kind="chart", metadata={"mime": mime}
        )
        return [name] if name else []
    offered = dict(_offered(value, writer))
    written = [
        writer.write(
            stem,
            one.ending,
            lambda path, c=offered[one.mime]: _write(path, c),  # type: ignore[misc]
            kind=one.kind,
            metadata={"mime": one.mime},
        )
        for one in TYPES
        if one.mime in offered and not (one.mime == "image/jpeg" and "image/png" in offered)
    ]
    return [name for name in written if name is not None]


def _specification(value: Any, writer: ArtifactWriter) -> tuple[str, bytes] | None:
    """Return the specification of a chart of plotly or altair: a viewer draws it."""
    library = type(value).__module__.partition(".")[0]
    if library not in CHARTS or not writer.wants("json"):
        return None
    method: Callable[[], str] | None = getattr(value, "to_json", None)
    if not callable(method) or not hasattr(value, "to_dict"):
        return None
    try:
        text = json.dumps(json.loads(method()), separators=(",", ":")).encode()
    except Exception as error:
        writer.warn(f"The chart was not kept: {reason(error)}")
        return None
    if len(text) > SPECIFICATION_BYTES_MAX:
        writer.warn("The chart was not kept: its specification is too large.")
        return None
    return (PLOTLY if library == "plotly" else VEGA_LITE), text


def _offered(value: Any, writer: ArtifactWriter) -> Iterator[tuple[str, bytes]]:
    """Ask an object for its outputs in the wanted formats; one that fails is a warning."""
    bundle = _bundle(value, writer)
    for one in TYPES:
        if not writer.wants(one.ending):
            continue
        try:
            data = bundle[one.mime] if one.mime in bundle else _ask(value, one.method)
            if data is not None:
                yield one.mime, _content(data, one.mime)
        except Exception as error:
            writer.warn(f"{one.method} of the value failed: {reason(error)}")


def _bundle(value: Any, writer: ArtifactWriter) -> dict[str, Any]:
    try:
        data = _ask(value, "_repr_mimebundle_")
    except Exception as error:
        writer.warn(f"_repr_mimebundle_ of the value failed: {reason(error)}")
        return {}
    return data if isinstance(data, dict) else {}


def _ask(value: Any, name: str) -> Any:
    """Call the method if the class has it; objects that answer to every name are left alone."""
    if not hasattr(type(value), name):
        return None
    data = getattr(value, name)()
    return data[0] if isinstance(data, tuple) and data else data  # data and its metadata


def _content(data: Any, mime: str) -> bytes:
    if mime in BINARY:
        if isinstance(data, str):
            try:
                return base64.b64decode(data, validate=False)
            except binascii.Error:
                raise ValueError("its text is not base64") from None
        return bytes(data)
    text = str(data)
    return (clean_html(text) if mime == "text/html" else text).encode()


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)

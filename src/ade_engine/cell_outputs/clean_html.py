"""Make HTML of unknown origin safe to show: keep known elements and attributes, drop the rest."""

import re
from html import escape
from html.parser import HTMLParser

CHARS_MAX = 2_000_000
ELEMENTS = frozenset(
    "a abbr b blockquote br caption center code col colgroup dd del details div dl dt em figcaption"
    " figure h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small span strong style"
    " sub summary sup table tbody td tfoot th thead tr tt u ul var".split()
)
VOID = frozenset(("br", "col", "hr", "img"))
# Their content is dropped with them.
DROPPED_WHOLE = frozenset(
    "script iframe object embed noscript template svg math title textarea select button"
    " applet frame frameset head".split()
)
ATTRIBUTES = frozenset(
    "align alt border class colspan dir height href id lang open rowspan scope src style title"
    " valign width".split()
)
_LINK = re.compile(r"(?i)^(https?://|mailto:|#)")
_PICTURE = re.compile(r"(?i)^data:image/(png|jpeg|gif|webp);base64,[a-z0-9+/=\s]*$")
# What CSS can use to load or to run something; a backslash can spell any of them.
_UNSAFE_CSS = re.compile(
    r"(?i)@import|url\s*\(|expression\s*\(|javascript:|behavior|-moz-binding|\\|<"
)


def clean_html(text: str) -> str:
    """Return HTML without scripts, event handlers, foreign content and addresses that run code."""
    cleaner = _Cleaner()
    cleaner.feed(text[:CHARS_MAX])
    cleaner.close()
    return cleaner.result()


class _Cleaner(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._open: list[str] = []
        self._dropping: list[str] = []
        self._css: list[str] | None = None

    def result(self) -> str:
        self._end_css()
        return "".join([*self._parts, *(f"</{name}>" for name in reversed(self._open))])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in DROPPED_WHOLE:
            self._dropping.append(tag)
        if self._dropping or tag not in ELEMENTS:
            return
        if tag == "style":
            self._css = []
            return
        kept = "".join(
            f' {name}="{escape(value or "")}"' for name, value in attrs if _is_safe(name, value)
        )
        self._parts.append(f"<{tag}{kept}>")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in DROPPED_WHOLE:
            return
        self.handle_starttag(tag, attrs)
        if tag in ELEMENTS and tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._dropping:
            if tag == self._dropping[-1]:
                self._dropping.pop()
            return
        if tag == "style":
            self._end_css()
        elif tag in self._open:
            while (last := self._open.pop()) != tag:
                self._parts.append(f"</{last}>")
            self._parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if self._dropping:
            return
        if self._css is not None:
            self._css.append(data)
        else:
            self._parts.append(escape(data, quote=False))

    def _end_css(self) -> None:
        if self._css is not None:
            css = "".join(self._css)
            if not _UNSAFE_CSS.search(css):
                self._parts.append(f"<style>{css}</style>")
        self._css = None


def _is_safe(name: str, value: str | None) -> bool:
    if name not in ATTRIBUTES:
        return False
    text = (value or "").strip()
    if name == "href":
        return bool(_LINK.match(text))
    if name == "src":
        return bool(_PICTURE.match(text))
    return name != "style" or not _UNSAFE_CSS.search(text)

"""The colours that a formula or a diagram can name."""

import re

from ade_engine.render.render_errors import BadPicture

HEX = re.compile(r"#[0-9a-fA-F]{3}(?:[0-9a-fA-F]{3})?")
NAMED = {
    "black": "#000000",
    "white": "#ffffff",
    "gray": "#808080",
    "grey": "#808080",
    "lightgray": "#d3d3d3",
    "darkgray": "#404040",
    "red": "#ff0000",
    "green": "#008000",
    "blue": "#0000ff",
    "cyan": "#00ffff",
    "magenta": "#ff00ff",
    "yellow": "#ffff00",
    "orange": "#ffa500",
    "purple": "#800080",
    "violet": "#ee82ee",
    "brown": "#a52a2a",
    "pink": "#ffc0cb",
    "teal": "#008080",
    "olive": "#808000",
    "lime": "#00ff00",
    "navy": "#000080",
    "maroon": "#800000",
    "crimson": "#dc143c",
    "gold": "#ffd700",
    "indigo": "#4b0082",
    "turquoise": "#40e0d0",
}


def css_color(color: str) -> str:
    """Return a colour as `#rrggbb`; `color` is a name from the list or hexadecimal."""
    plain = color.strip().lower()
    if plain in NAMED:
        return NAMED[plain]
    if HEX.fullmatch(plain):
        return plain if len(plain) == 7 else "#" + "".join(digit * 2 for digit in plain[1:])
    raise BadPicture(f"The colour {color[:30]!r} is unknown; use a colour name or #rrggbb")

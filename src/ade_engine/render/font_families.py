"""The generic family of a font, by its name."""

MONO, SERIF, SANS = "monospace", "serif", "sans-serif"
MONO_NAMES = ("mono", "courier", "consolas", "typewriter")
SERIF_NAMES = ("serif", "times", "roman", "georgia", "garamond", "palatino", "libertinus")


def generic_family(family: str) -> str:
    """Return the CSS generic family of a font; sans-serif if its name tells nothing."""
    plain = family.lower()
    if any(name in plain for name in MONO_NAMES):
        return MONO
    if "sans" not in plain and any(name in plain for name in SERIF_NAMES):
        return SERIF
    return SANS

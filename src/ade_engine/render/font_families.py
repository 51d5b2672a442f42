"""What kind of font a name means."""

MONO, SERIF, SANS = "monospace", "serif", "sans-serif"
MONO_NAMES = ("mono", "courier", "consolas", "typewriter")
SERIF_NAMES = ("serif", "times", "roman", "georgia", "garamond", "palatino", "libertinus")


def generic(family: str) -> str:
    """Return the kind of a font, by the names that are known."""
    plain = family.lower()
    if any(name in plain for name in MONO_NAMES):
        return MONO
    if "sans" not in plain and any(name in plain for name in SERIF_NAMES):
        return SERIF
    return SANS

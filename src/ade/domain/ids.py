"""Identifiers that sort by time: UUID version 7 (RFC 9562) with a fraction of a millisecond."""

from uuid import UUID

_RANDOM_BITS = 62
_VARIANT = 0b10 << _RANDOM_BITS
_VARIANTS = {f"{digit:x}": f"{0b1000 | digit & 0b11:x}" for digit in range(16)}
_TIME_CHARS = len("xxxxxxxx-xxxx-7xxx-")


def uuid7(at_us: int, entropy: int) -> str:
    """Make an identifier from a time and 62 random bits; later times sort after earlier ones."""
    milliseconds, microseconds = divmod(at_us, 1000)
    fraction = (microseconds << 12) // 1000
    value = (
        (milliseconds & ((1 << 48) - 1)) << 80
        | 0x7 << 76
        | fraction << 64
        | _VARIANT
        | entropy & ((1 << _RANDOM_BITS) - 1)
    )
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def uuids7(at_us: int, entropy: bytes) -> list[str]:
    """Make ascending identifiers of one moment, one from every 8 random bytes."""
    moment, digits = uuid7(at_us, 0)[:_TIME_CHARS], entropy.hex()
    return sorted(
        [
            f"{moment}{_VARIANTS[digits[at]]}{digits[at + 1 : at + 4]}-{digits[at + 4 : at + 16]}"
            for at in range(0, len(digits), 16)
        ]
    )


def is_uuid(text: str) -> bool:
    """Tell whether a text is a UUID in its usual form."""
    try:
        return str(UUID(text)) == text.lower()
    except (ValueError, AttributeError):
        return False

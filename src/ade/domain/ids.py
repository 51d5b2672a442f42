"""Identifiers that sort by time: UUID version 7 (RFC 9562) with a fraction of a millisecond."""

from uuid import UUID

_RANDOM_BITS = 62


def uuid7(at_us: int, entropy: int) -> str:
    """Make an identifier from a time and 62 random bits; later times sort after earlier ones."""
    milliseconds, microseconds = divmod(at_us, 1000)
    fraction = (microseconds << 12) // 1000
    value = (
        (milliseconds & ((1 << 48) - 1)) << 80
        | 0x7 << 76
        | fraction << 64
        | 0b10 << 62
        | entropy & ((1 << _RANDOM_BITS) - 1)
    )
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def is_uuid(text: str) -> bool:
    """Tell whether a text is a UUID in its usual spelling."""
    try:
        return str(UUID(text)) == text.lower()
    except (ValueError, AttributeError):
        return False

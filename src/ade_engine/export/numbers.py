"""Write the numbers of a table column for people, in the notation of the document's language.

The floating-point numbers of a column get the same number of decimals: as many as they need, but
not more than give the largest of them six significant digits; two are always kept, so that no cents
are lost. A number that would lose its digits that way keeps its first five. Very large and very
small ones are powers of ten. Whole numbers are never rounded. Digits are grouped in a column that
has 10,000 or more, except in one of whole numbers of equal length, which may be identifiers, dates
or postal codes.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple, TypeGuard

SIGNIFICANT_DIGITS = 6
SIGNIFICANT_DIGITS_MIN = 5
DECIMALS_KEPT = 2
# Later digits often come from rounding errors of calculations, and always from those of the type.
EXACT_DIGITS, FLOAT_DIGITS = 12, 15
GROUPED_FROM = 10_000
POWER_FROM, POWER_BELOW = 1e15, 1e-6
MINUS = "\N{MINUS SIGN}"
NARROW_SPACE = "\N{NARROW NO-BREAK SPACE}"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class NumberSigns(NamedTuple):
    """The signs that a language writes numbers with."""

    decimal: str
    group: str


POINT, COMMA, SPACE = NumberSigns(".", ","), NumberSigns(",", "."), NumberSigns(",", NARROW_SPACE)
INTERNATIONAL = NumberSigns(".", NARROW_SPACE)
NOTATIONS = {
    **dict.fromkeys(("en", "zh", "ja", "ko", "th", "he", "ms", "fil", "cy", "ga", "mt"), POINT),
    **dict.fromkeys(("de", "es", "it", "nl", "pt", "id", "tr", "da", "el", "hr", "ro"), COMMA),
    **dict.fromkeys(("sl", "sr", "is", "vi", "ca", "gl", "eu", "az"), COMMA),
    **dict.fromkeys(("fr", "ru", "uk", "pl", "cs", "sk", "sv", "nb", "nn", "no", "fi"), SPACE),
    **dict.fromkeys(("hu", "bg", "et", "lt", "lv", "be", "kk", "hy", "ka"), SPACE),
    "de-at": SPACE,
    "de-ch": NumberSigns(".", "\N{RIGHT SINGLE QUOTATION MARK}"),
    "es-mx": POINT,
    "pt-pt": SPACE,
}


def notation_of(language: str) -> NumberSigns:
    """Return the notation of a language such as `de` or `de-CH`; ISO 80000 has that of others."""
    tag = language.lower()
    return NOTATIONS.get(tag) or NOTATIONS.get(tag.partition("-")[0], INTERNATIONAL)


def is_number(value: object) -> TypeGuard[int | float]:
    """Tell whether a cell is a number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_texts(column: Sequence[object], language: str) -> list[str | None]:
    """Return the text of each number in a column, and None for what is not a number."""
    notation = notation_of(language)
    numbers = [value for value in column if is_number(value)]
    decimals = _decimals([value for value in numbers if isinstance(value, float)])
    grouped = _are_grouped(numbers)
    return [
        _text(value, decimals, notation if grouped else notation._replace(group=""))
        if is_number(value)
        else None
        for value in column
    ]


def plain_number(value: int | float) -> str:
    """Return a number as it is, without grouping, rounding or signs of a language."""
    if isinstance(value, int):
        return str(value)
    exact = repr(value)
    return exact if len(exact) <= EXACT_DIGITS + 2 else f"{value:.{EXACT_DIGITS}g}"


def _are_grouped(numbers: Sequence[int | float]) -> bool:
    if not any(abs(number) >= GROUPED_FROM for number in numbers):
        return False
    if any(isinstance(number, float) for number in numbers):
        return True
    lengths = {len(str(abs(number))) for number in numbers}
    return len(lengths) > 1


def _is_power(value: float) -> bool:
    return value != 0 and not POWER_BELOW <= abs(value) < POWER_FROM


def _decimals(values: Sequence[float]) -> int:
    """Return how many decimals the floating-point numbers of a column get."""
    usual = [value for value in values if not _is_power(value)]
    needed = max(map(_exact_decimals, usual), default=0)
    largest = max(map(abs, usual), default=0.0)
    if largest == 0:
        return 0
    before_point = math.floor(math.log10(largest)) + 1
    return min(needed, max(DECIMALS_KEPT, SIGNIFICANT_DIGITS - before_point))


def _exact_decimals(value: float) -> int:
    """Return how many decimals a number has, without those that come from rounding errors."""
    return max(
        _decimals_within(value, EXACT_DIGITS),
        min(DECIMALS_KEPT, _decimals_within(value, FLOAT_DIGITS)),
    )


def _decimals_within(value: float, digits: int) -> int:
    exponent = Decimal(f"{value:.{digits}g}").normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _text(value: int | float, decimals: int, notation: NumberSigns) -> str:
    if isinstance(value, int):
        return _written(str(value), notation)
    if _is_power(value):
        return _power_text(value, notation)
    rounded = f"{value:.{decimals}f}"
    error_max = abs(value) * 10.0 ** (1 - SIGNIFICANT_DIGITS_MIN) / 2
    if value != 0 and abs(float(rounded) - value) > error_max:
        own = SIGNIFICANT_DIGITS_MIN - 1 - math.floor(math.log10(abs(value)))
        rounded = f"{value:.{min(max(own, decimals), _exact_decimals(value))}f}"
    return _written(rounded, notation)


def _power_text(value: float, notation: NumberSigns) -> str:
    mantissa, _, exponent = f"{value:.{SIGNIFICANT_DIGITS - 1}e}".partition("e")
    shown = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    power = str(int(exponent)).translate(_SUPERSCRIPT)
    return f"{_written(shown, notation)}{NARROW_SPACE}×{NARROW_SPACE}10{power}"


def _written(digits: str, notation: NumberSigns) -> str:
    """Replace the signs of Python by those of a language; group long numbers."""
    sign = MINUS if digits.startswith("-") and digits.strip("-0.") else ""
    whole, _, part = digits.removeprefix("-").partition(".")
    whole = f"{int(whole):,}".replace(",", notation.group)
    return f"{sign}{whole}{notation.decimal}{part}" if part else f"{sign}{whole}"

"""Convert cells to text, numbers, dates or booleans, a whole column at a time.

Cells that cannot be converted stay as they are; the caller checks the kinds afterwards. Nothing
that depends on the locale is guessed: `decimal` and `day_first` say how the numbers and dates of
the whole column are written (see `notation`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from ade_engine.package.author_errors import Misuse
from ade_engine.package.field import FieldType
from ade_engine.package.notation import Notation
from ade_engine.sheets.arrays import BoolArray, ByteArray, FloatArray
from ade_engine.sheets.cells import DAY_MS, TIME_DAY_MS, CellArray, CellKind
from ade_engine.sheets.currencies import PATTERN as CURRENCY

SPACES = " \t\r\n\u00a0\u202f\u2007"
WHOLE_MAX = 2.0**53
SERIALS = (10_000, 80_000)  # date serial numbers of the years 1927 to 2119
SERIAL_ZERO_DAYS = 25_569  # the serial number of 1970-01-01
EPOCH_1904_DAYS = 1_462  # from the beginning of the one date system to that of the other
YEARS = (1800, 2200)
CALENDAR_MS = (-62_135_596_800_000, 253_402_300_799_999)  # the years 1 to 9999
TRUE_WORDS = ("true", "yes", "y", "t", "on", "1")
FALSE_WORDS = ("false", "no", "n", "f", "off", "0")

_CLOCKS = ("", " %H:%M", " %H:%M:%S")
_TAIL = r"(?:[ T]\d{1,2}:\d\d(?::\d\d)?)?$"
_DAY_FIRST = tuple(f"%d/%m/{year}{clock}" for year in ("%Y", "%y") for clock in _CLOCKS)
_MONTH_FIRST = tuple(f"%m/%d/{year}{clock}" for year in ("%Y", "%y") for clock in _CLOCKS)
_COMPACT_DATE = "%Y%m%d"
# (pattern, formats): dashes and dots are replaced by slashes, and T by a space, before parsing.
_LOOKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (rf"^\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}{_TAIL}", tuple(f"%Y/%m/%d{c}" for c in _CLOCKS)),
    (rf"^\d{{1,2}}\.\d{{1,2}}\.(?:\d\d|\d{{4}}){_TAIL}", _DAY_FIRST),
    (r"^\d{1,2}[ -]+[A-Za-z]{3,9}\.?,?[ -]+(?:\d\d|\d{4})$", ("%d %b %Y", "%d %B %Y", "%d %b %y")),
    (r"^[A-Za-z]{3,9}\.? +\d{1,2},? +\d{4}$", ("%b %d %Y", "%B %d %Y")),
    (r"^(?:18|19|20|21)\d{6}$", (_COMPACT_DATE,)),
)
_SLASHED = rf"^\d{{1,2}}[-/]\d{{1,2}}[-/](?:\d\d|\d{{4}}){_TAIL}"
_ORDERS = {True: _DAY_FIRST, False: _MONTH_FIRST}
_ANY_LOOK = "|".join(f"(?:{look})" for look in (*(look for look, _ in _LOOKS), _SLASHED))


def to_text(cells: CellArray) -> CellArray:
    """Convert numbers, dates (ISO 8601) and booleans to text."""
    dates = cells.is_kind(CellKind.DATE) & _in_calendar(cells.numbers)
    others = cells.is_kind(CellKind.NUMBER, CellKind.BOOL) | dates
    if not others.any():
        return cells
    text = cells.text
    if (numbers := cells.is_kind(CellKind.NUMBER)).any():
        text = _chosen(numbers, _numbers_as_text(cells.numbers), text)
    if (truths := cells.is_kind(CellKind.BOOL)).any():
        words = pl.Series(np.where(cells.numbers == 1, "TRUE", "FALSE"), dtype=pl.String)
        text = _chosen(truths, words, text)
    if dates.any():
        text = _chosen(dates, _dates_as_text(cells.numbers), text)
    return CellArray(
        np.where(others, np.uint8(CellKind.TEXT), cells.kinds),
        np.where(others, np.nan, cells.numbers),
        text,
    )


def to_number(cells: CellArray, decimal: str = ".") -> CellArray:
    """Convert texts such as `1,234.50`, `(12)`, `$ 5`, `7-` and `12.5 %` to numbers."""
    written = cells.is_kind(CellKind.TEXT)
    if not written.any():
        return cells
    return _with_numbers(cells, written, CellKind.NUMBER, _parsed_numbers(cells.text, decimal))


def to_date(cells: CellArray, *, day_first: bool = False, epoch_1904: bool = False) -> CellArray:
    """Convert texts that are dates, and numbers in the range of date serials or YYYYMMDD."""
    found = cells
    if (written := cells.is_kind(CellKind.TEXT)).any():
        found = _with_numbers(found, written, CellKind.DATE, _parsed_dates(cells.text, day_first))
    if (counted := cells.is_kind(CellKind.NUMBER)).any():
        found = _with_numbers(
            found, counted, CellKind.DATE, _serial_dates(cells.numbers, epoch_1904)
        )
    return found


def to_boolean(cells: CellArray) -> CellArray:
    """Convert yes and no, true and false, 1 and 0 and the like to booleans."""
    found = cells
    if (written := cells.is_kind(CellKind.TEXT)).any():
        words = cells.text.str.strip_chars(SPACES).str.to_lowercase()
        truth = np.where(words.is_in(TRUE_WORDS).fill_null(False).to_numpy(), 1.0, np.nan)
        truth[words.is_in(FALSE_WORDS).fill_null(False).to_numpy()] = 0.0
        found = _with_numbers(found, written, CellKind.BOOL, truth)
    if (counted := cells.is_kind(CellKind.NUMBER)).any():
        truth = np.where(np.isin(cells.numbers, (0, 1)), cells.numbers, np.nan)
        found = _with_numbers(found, counted, CellKind.BOOL, truth)
    return found


def trimmed(cells: CellArray) -> CellArray:
    """Strip whitespace from texts; a blank text becomes an empty cell."""
    if not cells.is_kind(CellKind.TEXT).any():
        return cells
    return with_texts(cells, cells.text.str.strip_chars(SPACES))


def with_texts(cells: CellArray, texts: pl.Series) -> CellArray:
    """Replace the texts of the cells that hold text; an empty text becomes an empty cell."""
    written = cells.is_kind(CellKind.TEXT)
    if not written.all():
        texts = _chosen(written, texts, cells.text)
    gone = texts.is_null() | (texts == "")
    if not gone.any():
        return CellArray(cells.kinds, cells.numbers, texts)
    emptied = gone.fill_null(True).to_numpy() & written
    if not emptied.any():
        return CellArray(cells.kinds, cells.numbers, texts)
    kinds = np.where(emptied, np.uint8(CellKind.EMPTY), cells.kinds)
    return CellArray(
        kinds, cells.numbers, _chosen(emptied, pl.Series([None], dtype=pl.String), texts)
    )


def with_replaced(cells: CellArray, values: Mapping[str, object]) -> CellArray:
    """Replace whole texts by values of any kind; a text that is not a key stays."""
    written = cells.is_kind(CellKind.TEXT)
    keys = [key for key in values if isinstance(key, str)]
    if not keys or not written.any():
        return cells
    try:
        made = CellArray.of([values[key] for key in keys])
    except (TypeError, ValueError):
        wants = "replace: the values must be text, numbers, True or False, dates, times or None"
        raise Misuse(wants) from None
    places = cells.text.replace_strict(
        keys, list(range(len(keys))), default=None, return_dtype=pl.Int64
    )
    found = places.is_not_null().to_numpy() & written
    if not found.any():
        return cells
    at = places.fill_null(0).to_numpy()
    return CellArray(
        np.where(found, made.kinds[at], cells.kinds),
        np.where(found, made.numbers[at], cells.numbers),
        made.text.gather(at).zip_with(pl.Series(found), cells.text),
    )


def to_type(cells: CellArray, wanted: str, notation: Notation) -> CellArray:
    """Convert cells to a field's type, as far as possible."""
    match wanted:
        case FieldType.TEXT:
            return trimmed(to_text(cells))
        case FieldType.NUMBER | FieldType.INTEGER:
            return to_number(trimmed(cells), notation.decimal)
        case FieldType.DATE:
            epoch_1904 = notation.preference.epoch_1904
            return to_date(trimmed(cells), day_first=notation.day_first, epoch_1904=epoch_1904)
        case FieldType.BOOLEAN:
            return to_boolean(trimmed(cells))
        case _:
            return cells


def misfits(cells: CellArray, wanted: str) -> BoolArray:
    """Mark the cells that are not of a field's type."""
    kind = _KIND_OF_TYPE.get(wanted)
    if kind is None:
        return np.zeros(len(cells), np.bool_)
    wrong: BoolArray = (cells.kinds != kind) & (cells.kinds != CellKind.EMPTY)
    if wanted == FieldType.INTEGER:
        wrong |= (cells.kinds == kind) & (cells.numbers != np.floor(cells.numbers))
    return wrong & ~cells.is_kind(CellKind.ERROR, CellKind.NO_VALUE)


_KIND_OF_TYPE: dict[str, CellKind] = {
    FieldType.TEXT: CellKind.TEXT,
    FieldType.NUMBER: CellKind.NUMBER,
    FieldType.INTEGER: CellKind.NUMBER,
    FieldType.DATE: CellKind.DATE,
    FieldType.BOOLEAN: CellKind.BOOL,
}


def changed_cells(before: CellArray, after: CellArray) -> int:
    """Count the cells that differ between two columns of the same rows."""
    if before is after:
        return 0
    differ: BoolArray = before.kinds != after.kinds
    if before.numbers is not after.numbers:
        same = (before.numbers == after.numbers) | (
            np.isnan(before.numbers) & np.isnan(after.numbers)
        )
        differ = differ | ~same
    if before.text is not after.text:
        differ = differ | before.text.ne_missing(after.text).to_numpy()
    return int(np.count_nonzero(differ))


def _with_numbers(
    cells: CellArray, candidates: BoolArray, kind: CellKind, numbers: FloatArray
) -> CellArray:
    """Convert the candidates that have a finite number to a kind; other cells stay."""
    turned = candidates & np.isfinite(numbers)
    if not turned.any():
        return cells
    if turned.all():
        return CellArray(
            np.full(len(cells), kind, np.uint8), numbers, CellArray.empty(len(cells)).text
        )
    kinds: ByteArray = np.where(turned, np.uint8(kind), cells.kinds)
    text = _chosen(turned, pl.Series([None], dtype=pl.String), cells.text)
    return CellArray(kinds, np.where(turned, numbers, cells.numbers), text)


def _chosen(mask: BoolArray, these: pl.Series, others: pl.Series) -> pl.Series:
    return (
        these.zip_with(pl.Series(mask), others)
        if len(these) == len(others)
        else pl.select(
            pl.when(pl.Series(mask)).then(pl.lit(these[0], dtype=pl.String)).otherwise(others)
        ).to_series()
    )


def _numbers_as_text(numbers: FloatArray) -> pl.Series:
    whole = np.isfinite(numbers) & (np.floor(numbers) == numbers) & (np.abs(numbers) < WHOLE_MAX)
    integers = pl.Series(np.where(whole, numbers, 0).astype(np.int64)).cast(pl.String)
    if whole.all():
        return integers
    return _chosen(whole, integers, pl.Series(numbers).cast(pl.String))


def _dates_as_text(numbers: FloatArray) -> pl.Series:
    shown = moments(numbers)
    days = shown.dt.strftime("%Y-%m-%d")
    clock = np.mod(numbers, DAY_MS) != 0
    if not (clock & np.isfinite(numbers)).any():
        return days
    times = (numbers >= TIME_DAY_MS) & (numbers < TIME_DAY_MS + DAY_MS)
    full = _chosen(times, shown.dt.strftime("%H:%M:%S"), shown.dt.strftime("%Y-%m-%d %H:%M:%S"))
    return _chosen(clock | times, full, days)


def _in_calendar(numbers: FloatArray) -> BoolArray:
    """Mark the timestamps in the years 1 to 9999; NaN is not marked."""
    with np.errstate(invalid="ignore"):
        inside: BoolArray = (numbers >= CALENDAR_MS[0]) & (numbers <= CALENDAR_MS[1])
    return inside


def moments(numbers: FloatArray) -> pl.Series:
    """Convert the numbers of DATE cells to datetimes; null outside the years 1 to 9999."""
    known = _in_calendar(numbers)
    ms = pl.Series(np.where(known, numbers, 0).round().astype(np.int64)).cast(pl.Datetime("ms"))
    return (
        ms
        if known.all()
        else ms.to_frame("m").select(pl.when(pl.Series(known)).then(pl.col("m"))).to_series()
    )


def _parsed_numbers(text: pl.Series, decimal: str) -> FloatArray:
    plain = text.str.replace_all(",", ".", literal=True) if decimal == "," else text
    if decimal == ",":
        plain = pl.select(pl.when(~text.str.contains(".", literal=True)).then(plain)).to_series()
    numbers = plain.cast(pl.Float64, strict=False).to_numpy(writable=True)
    left = ~np.isfinite(numbers) & text.is_not_null().to_numpy()
    if left.any():
        numbers[~np.isfinite(numbers)] = np.nan
        numbers[left] = _decorated_numbers(text.filter(pl.Series(left)), decimal)
    return numbers


def _decorated_numbers(text: pl.Series, decimal: str) -> FloatArray:
    """Parse numbers with separators, signs, currencies, percent signs and parentheses."""
    groups = rf"[{',' if decimal == '.' else '.'}'’\s\x{{a0}}\x{{202f}}]"
    money = f"(?:{CURRENCY})?"
    pattern = (
        rf"^\s*(\()?\s*([-+−])?\s*{money}\s*([-+−])?\s*"
        rf"(\d{{1,3}}(?:{groups}\d{{3}})+|\d+)?(\{decimal}\d*)?([eE][-+]?\d+)?"
        rf"\s*(%)?\s*{money}\s*(-)?\s*(\))?\s*$"
    )
    names = ["open", "sign", "inner", "whole", "part", "power", "percent", "after", "close"]
    found = text.str.extract_groups(pattern).struct.rename_fields(names).struct.unnest()
    whole = found["whole"].str.replace_all(r"\D", "").fill_null("")
    part = found["part"].str.replace(decimal, ".", literal=True).fill_null("")
    digits = pl.Series(whole.fill_null("") + part + found["power"].fill_null(""))
    numbers = digits.cast(pl.Float64, strict=False).to_numpy(writable=True)
    signs = [found[name].is_in(["-", "−"]).fill_null(False) for name in ("sign", "inner", "after")]
    opened, closed = found["open"].is_not_null(), found["close"].is_not_null()
    minus = sum(sign.cast(pl.Int8) for sign in [*signs, opened & closed])
    numbers[np.asarray(minus) % 2 == 1] *= -1
    numbers[found["percent"].is_not_null().to_numpy()] /= 100
    numbers[(opened != closed).to_numpy() | ~np.isfinite(numbers)] = np.nan
    return numbers


def _parsed_dates(text: pl.Series, day_first: bool) -> FloatArray:
    numbers = np.full(len(text), np.nan)
    trimmed_text = text.str.strip_chars(SPACES)
    if not trimmed_text.str.contains(_ANY_LOOK).any():
        return numbers
    for look, patterns in (*_LOOKS, (_SLASHED, _ORDERS[day_first])):
        left = np.flatnonzero(trimmed_text.str.contains(look).fill_null(False).to_numpy())
        if not len(left):
            continue
        plain = _plain_date(trimmed_text.gather(left), look)
        for pattern in patterns:
            found = _dates_of(plain, pattern)
            got = np.isfinite(found)
            numbers[left[got]] = found[got]
            left, plain = left[~got], plain.filter(pl.Series(~got))
            if not len(left):
                break
    return numbers


def _plain_date(text: pl.Series, look: str) -> pl.Series:
    """Normalise the separators of dates, so that few formats match them all."""
    if "A-Z" in look:
        return text.str.replace_all(r"[ .,-]+", " ")
    return text.str.replace_all(r"[-.]", "/").str.replace("T", " ", literal=True)


def _dates_of(texts: pl.Series, pattern: str) -> FloatArray:
    moments = texts.str.to_datetime(pattern, strict=False, time_unit="ms")
    possible = moments.dt.year().is_between(*YEARS).fill_null(False).to_numpy()
    ms = moments.dt.epoch("ms").cast(pl.Float64).to_numpy()
    return np.where(possible, ms, np.nan)


def _serial_dates(numbers: FloatArray, epoch_1904: bool) -> FloatArray:
    with np.errstate(invalid="ignore"):
        serial = (numbers >= SERIALS[0]) & (numbers < SERIALS[1])
        compact = (numbers >= YEARS[0] * 10_000) & (numbers < YEARS[1] * 10_000)
    zero = SERIAL_ZERO_DAYS - (EPOCH_1904_DAYS if epoch_1904 else 0)
    dates = np.where(serial, np.round((numbers - zero) * DAY_MS), np.nan)
    if compact.any():
        digits = pl.Series(np.where(compact, numbers, 0).astype(np.int64)).cast(pl.String)
        dates = np.where(compact, _dates_of(digits, _COMPACT_DATE), dates)
    return dates

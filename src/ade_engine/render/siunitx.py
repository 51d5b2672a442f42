"""Write numbers with units (`\\SI`, `\\si`, `\\num`, `\\ang` of siunitx) in plain LaTeX.

Units are commands (`\\kilo\\meter\\per\\second\\squared`) or symbols (`km.s^{-2}`), always upright.
Digits are grouped by thin spaces where a number has more than four on one side of its point.
"""

from __future__ import annotations

import re

NUMBER = re.compile(
    r"(?P<sign>[+-]|\\pm)?(?P<number>\d+(?:[.,]\d*)?|[.,]\d+)?(?P<uncertain>\(\d+\))?"
    r"(?:(?:\+-|\\pm)(?P<deviation>\d+(?:[.,]\d*)?|[.,]\d+))?(?:[eEdD](?P<power>[+-]?\d+))?"
)
UNIT_TOKEN = re.compile(
    r"(?P<power>\\(?:tothe|raiseto)\s*\{[^{}]*\})|(?P<command>\\[a-zA-Z]+)"
    r"|\^(?P<exponent>\{[^{}]*\}|-?\d)|(?P<times>[.~]|\\,)|(?P<over>/)|(?P<sign>[^\W\d_]+|\\%|[°′″])|\s+"
)
EXPONENT = re.compile(r"[+-]?\d{1,3}(?:[./]\d{1,3})?")


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split() for pair in text.split(","))


PREFIXES = _pairs(
    """
    quecto q, ronto r, yocto y, zepto z, atto a, femto f, pico p, nano n, micro µ, milli m,
    centi c, deci d, deca da, deka da, hecto h, kilo k, mega M, giga G, tera T, peta P, exa E,
    zetta Z, yotta Y, ronna R, quetta Q, kibi Ki, mebi Mi, gibi Gi, tebi Ti
    """
)
UNITS = _pairs(
    r"""
    metre m, meter m, gram g, kilogram kg, second s, ampere A, kelvin K, mole mol, candela cd,
    hertz Hz, newton N, pascal Pa, joule J, watt W, coulomb C, volt V, farad F, ohm Ω,
    siemens S, weber Wb, tesla T, henry H, lumen lm, lux lx, becquerel Bq, gray Gy, sievert Sv,
    katal kat, radian rad, steradian sr, degreeCelsius °C, celsius °C, degree °, arcminute ′,
    arcsecond ″, percent \%, minute min, hour h, day d, litre L, liter L, tonne t, hectare ha,
    electronvolt eV, dalton Da, atomicmassunit u, bel B, decibel dB, neper Np, bar bar,
    angstrom Å, byte B, bit bit, astronomicalunit au, knot kn, mmHg mmHg, barn b, molar M,
    nm nm, um µm, mm mm, cm cm, km km, kg kg, mg mg, ms ms, us µs, ns ns, kHz kHz, MHz MHz,
    GHz GHz, eV eV, keV keV, MeV MeV, GeV GeV, kPa kPa, mA mA, mV mV, kV kV, kW kW, MW MW,
    kJ kJ, kWh kWh, mL mL
    """
)
POWERS_AFTER = {"squared": "2", "cubed": "3"}
POWERS_BEFORE = {"square": "2", "cubic": "3"}
# These follow their number without a space.
CLOSE = {"°", "′", "″"}
GROUP_FROM = 5
DIGIT_GROUP = 3


class UnknownUnit(Exception):
    """A number or a unit cannot be read; the message says which."""


def quantity_latex(number: str, unit: str) -> str:
    """Return a number with its unit."""
    shown = unit_latex(unit)
    space = "" if shown in {rf"\mathrm{{{sign}}}" for sign in CLOSE} else r"\,"
    return f"{number_latex(number)}{space}{shown}"


def number_latex(text: str) -> str:
    """Return a number, with its uncertainty and its power of ten if it has them."""
    found = NUMBER.fullmatch("".join(text.split()))
    if found is None or not (found["number"] or found["power"]):
        raise UnknownUnit(f"{text.strip()!r} is not a number")
    shown = _digits(found["number"]) if found["number"] else ""
    shown += found["uncertain"] or ""
    if found["deviation"]:
        shown += rf"\pm {_digits(found['deviation'])}"
        shown = f"({shown})" if found["power"] else shown
    if found["power"]:
        power = str(int(found["power"]))
        shown += (r"\times " if shown else "") + f"10^{{{power}}}"
    # A sign in braces belongs to its number and has no space after it.
    return f"{{{found['sign']}}}{shown}" if found["sign"] else shown


def angle_latex(text: str) -> str:
    """Return an angle: degrees, minutes and seconds, separated by semicolons."""
    parts = text.split(";")
    if len(parts) > 3:
        raise UnknownUnit(f"{text.strip()!r} is not an angle")
    signs = ("°", "′", "″")
    shown = [
        f"{number_latex(part)}\\mathrm{{{sign}}}"
        for part, sign in zip(parts, signs, strict=False)
        if part.strip()
    ]
    if not shown:
        raise UnknownUnit("an angle is empty")
    return "".join(shown)


def unit_latex(text: str) -> str:
    """Return a unit; the power of a unit after `\\per` is negative."""
    reader = _UnitReader()
    at = 0
    while at < len(text):
        token = UNIT_TOKEN.match(text, at)
        if token is None:
            raise UnknownUnit(f"{text[at]!r} is not part of a unit")
        reader.take(token)
        at = token.end()
    return reader.latex()


class _UnitReader:
    """Collect the factors of a unit with their powers; prefixes and `\\per` wait for the next."""

    def __init__(self) -> None:
        self._above: list[str] = []
        self._factors: list[tuple[str, str]] = []
        self._prefix, self._power, self._inverse = "", "", False

    def take(self, token: re.Match[str]) -> None:
        name = (token["command"] or "")[1:]
        if power := token["power"] or token["exponent"] or POWERS_AFTER.get(name):
            self._raise_last(power)
        elif name in UNITS or token["sign"]:
            symbol = self._prefix + (UNITS[name] if name else token["sign"])
            self._factors.append((symbol, _product("-" if self._inverse else "", self._power)))
            self._prefix, self._power, self._inverse = "", "", False
        elif name == "per":
            self._inverse = True
        elif name in POWERS_BEFORE:
            self._power = POWERS_BEFORE[name]
        elif name in PREFIXES:
            self._prefix += PREFIXES[name]
        elif name:
            raise UnknownUnit(f"\\{name} is not a known unit")
        elif token["over"]:
            self._above.append(_factors(self._factors))
            self._factors = []

    def latex(self) -> str:
        if self._prefix or self._power or self._inverse:
            raise UnknownUnit("a prefix or \\per has no unit after it")
        return "{/}".join((*self._above, _factors(self._factors)))

    def _raise_last(self, power: str) -> None:
        if not self._factors:
            raise UnknownUnit("a power has no unit before it")
        symbol, own = self._factors[-1]
        self._factors[-1] = (symbol, _product(own, _exponent(power)))


def _factors(factors: list[tuple[str, str]]) -> str:
    return r"\,".join(
        rf"\mathrm{{{symbol}}}" + (f"^{{{power}}}" if power else "") for symbol, power in factors
    )


def _exponent(text: str) -> str:
    inner = text[text.find("{") + 1 :].rstrip("}").strip() if "{" in text else text
    if not EXPONENT.fullmatch(inner):
        raise UnknownUnit(f"{inner!r} is not a power")
    return inner.removeprefix("+")


def _product(sign: str, power: str) -> str:
    """Return a power with a sign; no power is 1 if it is negative, and is left out otherwise."""
    if not sign.startswith("-"):
        return power
    return power.removeprefix("-") if power.startswith("-") else f"-{power or 1}"


def _digits(number: str) -> str:
    whole, point, part = number.replace(",", ".").partition(".")
    if len(whole) >= GROUP_FROM:
        head = len(whole) % DIGIT_GROUP
        groups = [whole[:head]] if head else []
        groups += [whole[at : at + DIGIT_GROUP] for at in range(head, len(whole), DIGIT_GROUP)]
        whole = r"\,".join(groups)
    if len(part) >= GROUP_FROM:
        part = r"\,".join(part[at : at + DIGIT_GROUP] for at in range(0, len(part), DIGIT_GROUP))
    return f"{whole or '0'}{point if part else ''}{part}"

"""Recognise currencies: signs, and the codes of ISO 4217."""

from __future__ import annotations

import re

SIGNS = "$€£¥₹₽₩₺₪₫₴₦฿"
_LISTED = """
AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD
CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD
GNF GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD
KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK
NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD
SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF
XCD XOF XPF YER ZAR ZMW ZWL
"""
CODES = frozenset(_LISTED.split())
_IN_BRACKETS = re.compile(r"\[\$([^\]-]+)")
_LITERAL = re.compile(rf'"\s*([A-Z]{{3}})\s*"|([{SIGNS}])')
PATTERN = rf"[{SIGNS}]|(?:{'|'.join(sorted(CODES))})"


def currency_of_format(number_format: str) -> str | None:
    """Return the currency that a number format shows, such as `[$€-407]` or `"EUR"`."""
    first = number_format.split(";", 1)[0]
    found = _IN_BRACKETS.search(first) or _LITERAL.search(first)
    name = next((group.strip() for group in found.groups() if group), "") if found else ""
    return name if name in CODES or (len(name) == 1 and name in SIGNS) else None

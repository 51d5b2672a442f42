from ade_engine import Field, Issue

FIELD = Field(
    label="Net pay",
    required=True,
    type="number",
    currency="EUR",
    order=70,
    synonyms=["net", "payout", "payout net"],
    totals=True,
)


def validate(value, row):
    """What is paid out is what was earned less what was deducted."""
    earned = (row.get("regular_pay") or 0) + (row.get("overtime_pay") or 0)
    deducted = (row.get("tax") or 0) + (row.get("pension") or 0)
    if abs(earned - deducted - value) <= 0.005:
        return None
    return Issue("net_does_not_add_up", message="It is not what was earned less the deductions.")

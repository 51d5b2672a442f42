from ade_engine import Field

FIELD = Field(
    label="Net pay",
    required=True,
    type="number",
    order=70,
    synonyms=["net", "payout", "payout net"],
    totals=True,
)


def validate(value, row):
    """What is paid out is what was earned less what was deducted."""
    earned = (row.get("regular_pay") or 0) + (row.get("overtime_pay") or 0)
    deducted = (row.get("tax") or 0) + (row.get("pension") or 0)
    return "net_does_not_add_up" if abs(earned - deducted - value) > 0.005 else None

from ade_engine import Field

FIELD = Field(label="Amount", required=True, type="number", order=30, totals=True)


def detect_signs(column):
    """Amounts go both ways; a balance seldom does."""
    numbers = column.as_number()
    return 0.3 if (numbers < 0).any() and (numbers > 0).any() else 0


def validate_column(column):
    return column.issues_where(
        column == 0, code="zero_amount", severity="info", message="Nothing was moved."
    )

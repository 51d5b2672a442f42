from ade_engine import Field

from ._money import not_negative

FIELD = Field(
    label="Regular pay",
    required=True,
    type="number",
    currency="EUR",
    order=30,
    synonyms=["earnings regular", "base pay"],
    totals=True,
)


def validate_column(column):
    return not_negative(column)

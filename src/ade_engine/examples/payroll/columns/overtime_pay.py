from ade_engine import Field

from ._money import not_negative

FIELD = Field(
    label="Overtime pay",
    type="number",
    currency="EUR",
    order=40,
    synonyms=["earnings overtime"],
    totals=True,
)


def transform_column(column):
    return column.fill_empty(0)


def validate_column(column):
    return not_negative(column)

from ade_engine import Field

FIELD = Field(
    label="Employee ID",
    required=True,
    type="text",
    order=10,
    synonyms=["employee number", "personnel number", "employee no"],
    unique=True,
)


def transform_column(column):
    """Spreadsheets eat leading zeros."""
    return column.pad_left(5)

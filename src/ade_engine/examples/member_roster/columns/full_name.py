from ade_engine import Field

FIELD = Field(
    label="Name", required=True, type="text", order=20, synonyms=["full name", "member name"]
)


def transform_column(column):
    """Write `Doe, Jane` as `Jane Doe`."""
    return column.squeeze().replace(r"^([^,]+), (.+)$", "$2 $1", regex=True)

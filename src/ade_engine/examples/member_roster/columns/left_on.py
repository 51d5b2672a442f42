from ade_engine import Field

FIELD = Field(label="Left on", type="date", order=50, synonyms=["end date", "leaving date"])


def validate_column(column, table):
    """A member cannot leave before joining."""
    joined = table.get("joined_on")
    if joined is None:
        return None
    return column.issues_where(
        column < joined, code="left_before_joining", message="The end is before the start."
    )

from ade_engine import Field

FIELD = Field(label="Balance", type="number", order=40, synonyms=["running balance"])


def validate_table(column, table):
    """Each balance is the one above plus the amount."""
    expected = column.shift(1) + table["amount"]
    return column.issues_where(
        ~column.is_close(expected),
        code="balance_jumps",
        message="The balance is not the one above plus the amount.",
    )

"""What the columns with amounts share; files that begin with `_` are no fields."""


def not_negative(column):
    return column.issues_where(
        column < 0, code="negative_amount", message="An amount is never negative here."
    )

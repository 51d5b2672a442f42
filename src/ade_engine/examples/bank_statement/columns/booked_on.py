from ade_engine import Field

FIELD = Field(
    label="Booked on", required=True, type="date", order=10, synonyms=["date", "booking date"]
)


def validate_table(column):
    """Bookings stand in the order of their dates."""
    return column.issues_where(
        column < column.shift(1),
        code="out_of_order",
        severity="warning",
        message="The booking is older than the one above it.",
    )

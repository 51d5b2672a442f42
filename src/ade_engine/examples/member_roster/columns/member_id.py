from ade_engine import Field

FIELD = Field(
    label="Member ID",
    required=True,
    type="text",
    order=10,
    synonyms=["employee id", "member no", "id"],
    unique=True,
)

PATTERN = r"[A-Z]{2}\d{6}"


def detect_pattern(column):
    """Most cells look like a member's number."""
    return 0.9 * column.upper().share_matching(PATTERN)


def transform(value):
    return value.replace(" ", "").upper()


def validate_column(column):
    return column.issues_where(
        ~column.matches(PATTERN),
        code="invalid_format",
        message="A member ID is two letters and six digits.",
    )

from ade_engine import Field

FIELD = Field(
    label="Email", type="text", order=30, synonyms=["e-mail", "mail", "email address", "contact"]
)


def detect_at_sign(column):
    return 0.6 * column.share_matching(r"[^@\s]+@[^@\s]+\.\w+")


def transform_column(column):
    return column.lower()


def validate_column(column):
    return column.issues_where(
        ~column.matches(r"[^@\s]+@[^@\s]+\.[a-z]{2,}"),
        code="invalid_email",
        severity="warning",
        message="This does not look like an address.",
    )

from ade_engine import Field

FIELD = Field(
    label="Text", type="text", order=20, synonyms=["details", "description", "booking text"]
)


def transform_column(column):
    return column.squeeze()

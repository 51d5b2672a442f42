from ade_engine import Field

FIELD = Field(label="Status", type="text", order=60, allowed=["active", "left", "on leave"])


def transform_column(column):
    return column.lower().replace({"a": "active", "act": "active", "l": "left", "loa": "on leave"})

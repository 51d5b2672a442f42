from ade_engine import Field

FIELD = Field(label="Employee name", type="text", order=20, synonyms=["name"])

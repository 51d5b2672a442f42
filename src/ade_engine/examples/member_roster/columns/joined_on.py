from ade_engine import Field

FIELD = Field(
    label="Joined on", type="date", order=40, synonyms=["start date", "hire date", "member since"]
)

from ade_engine import Field

FIELD = Field(
    label="Tax",
    type="number",
    currency="EUR",
    order=50,
    synonyms=["deductions tax", "income tax"],
    totals=True,
)

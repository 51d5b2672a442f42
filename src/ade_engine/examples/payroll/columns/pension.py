from ade_engine import Field

FIELD = Field(
    label="Pension",
    type="number",
    currency="EUR",
    order=60,
    synonyms=["deductions pension"],
    totals=True,
)

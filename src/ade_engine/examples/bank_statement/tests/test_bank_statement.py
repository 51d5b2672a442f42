def test_only_bookings_are_written(ade_run):
    result = ade_run("samples/statement.csv")
    assert result.evaluation == "complete"
    assert [row["text"] for row in result.rows] == [
        "Rent",
        "Salary",
        "Groceries",
        "Refund of deposit",
        "Insurance",
    ]


def test_numbers_and_dates_are_read_as_they_are_written_there(ade_run):
    rows = ade_run("samples/statement.csv").rows
    assert [row["amount"] for row in rows] == [-650, 2150.5, -84.25, 0, -120]
    assert rows[0]["booked_on"].isoformat() == "2024-04-02"


def test_the_running_balance_is_checked(ade_run):
    assert ade_run("samples/statement.csv").issues == {
        ("balance", "balance_jumps"): ["D10"],
        ("booked_on", "out_of_order"): ["A10"],
        ("amount", "zero_amount"): ["C9"],
    }


def test_a_total_that_does_not_add_up_is_found(ade_run):
    text = (ade_run.folder / "samples/statement.csv").read_text()
    changed = text.replace("Total;;1.296,25", "Total;;1.269,25")
    assert ade_run(text=changed).issues[("amount", "total_mismatch")] == ["C11"]

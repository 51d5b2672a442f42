def test_both_header_rows_count(ade_run):
    result = ade_run("samples/payroll.csv")
    assert result.evaluation == "complete"
    assert result.columns == {
        "employee_id": "A",
        "employee_name": "B",
        "regular_pay": "C",
        "overtime_pay": "D",
        "tax": "E",
        "pension": "F",
        "net_pay": "G",
    }


def test_the_total_is_not_an_employee(ade_run):
    rows = ade_run("samples/payroll.csv").rows
    assert [row["employee_id"] for row in rows] == ["00017", "00204", "01033", "01107"]
    assert [row["overtime_pay"] for row in rows] == [150, 0, 0, 75]


def test_totals_and_net_pay_add_up_except_where_they_do_not(ade_run):
    assert ade_run("samples/payroll.csv").issues == {("net_pay", "net_does_not_add_up"): ["G8"]}


def test_a_wrong_total_is_found(ade_run):
    text = (ade_run.folder / "samples/payroll.csv").read_text()
    changed = text.replace("2,407.25", "2,407.52")
    assert ade_run(text=changed).issues[("tax", "total_mismatch")] == ["E9"]

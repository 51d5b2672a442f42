def test_the_columns_find_their_fields(ade_run):
    result = ade_run("samples/roster.csv")
    assert result.evaluation == "complete"
    assert result.columns == {
        "member_id": "A",
        "full_name": "B",
        "email": "C",
        "joined_on": "D",
        "left_on": "E",
        "status": "F",
    }
    assert result.headers[-1] == "Locker"


def test_values_are_put_in_order(ade_run):
    rows = ade_run("samples/roster.csv").rows
    assert [row["member_id"] for row in rows[:2]] == ["RC100001", "RC100002"]
    assert [row["full_name"] for row in rows[:2]] == ["Ada Okafor", "Lin Wei"]
    assert {row["status"] for row in rows} == {"active", "left", "on leave"}


def test_issues_are_found_where_they_are(ade_run):
    issues = ade_run("samples/roster.csv").issues
    assert issues == {
        ("member_id", "invalid_format"): ["A9"],
        ("member_id", "duplicate_value"): ["A10"],
        ("email", "invalid_email"): ["C7"],
        ("left_on", "left_before_joining"): ["E8"],
    }


def test_a_roster_without_numbers_is_partial(ade_run):
    result = ade_run([["Name", "Status"], ["Ada Okafor", "active"], ["Lin Wei", "left"]])
    assert result.evaluation == "partial"
    assert result.missing == ["member_id"]

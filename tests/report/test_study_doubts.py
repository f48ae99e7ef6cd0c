from cockpit.report.study_doubts import grouped

WAITED = "the generator waited {} % of the time for a CPU: latencies include that wait"


def test_the_same_doubt_of_all_cells_is_one_line_with_a_range() -> None:
    found = [(f"c={rung}", WAITED.format(share)) for rung, share in ((1, 11), (2, 9), (4, 25), (8, 4.5))]
    assert grouped(found, 4) == ["all 4: " + WAITED.format("4.5 to 25")]
    assert grouped(found, 7) == ["4 of 7: " + WAITED.format("4.5 to 25")]


def test_few_cells_are_named_and_other_doubts_stand_apart_in_order() -> None:
    found = [("a", "few samples (10 responses)"), ("a", WAITED.format(7)), ("b", WAITED.format(7))]
    assert grouped(found, 9) == ["a: few samples (10 responses)", "a, b: " + WAITED.format(7)]
    assert grouped([], 9) == []

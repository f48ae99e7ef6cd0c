"""profiles/README.md: each shipped study has its section there, and a result goes into its own section only."""

import json
from pathlib import Path

from cockpit.report.study import DETAILS
from tests.lab import results_page
from tests.lab.studies import STUDIES

RESULT = f"""\
### atime

Is it cheaper?

`GET http://web1/ · open 800/s`

| variant | req/s |
|---|---:|
| noatime | 800 |

- 4 of at most 6 rounds

{DETAILS}

- atime of small.txt: unchanged"""


def a_study(folder: Path, *verdicts: tuple[str, bool, str | None]) -> Path:
    """A study's folder with verdicts: outcome, whether it is the A/A control, a contradiction."""
    folder.mkdir(exist_ok=True)
    (folder / "result.md").write_text(RESULT)
    told = [
        {"verdict": {"outcome": outcome}, "control": control, "contradiction": contradiction}
        | {"first": "a", "other": f"b{number}", "level": 8, "part": "warm"}
        for number, (outcome, control, contradiction) in enumerate(verdicts)
    ]
    (folder / "result.json").write_text(json.dumps({"verdicts": told}))
    return folder


def test_every_shipped_profile_says_title_source_and_expectation() -> None:
    shipped = {path.stem for path in results_page.PROFILES.glob("*.toml") if "[study]" in path.read_text()}
    assert shipped == set(STUDIES)
    for name in STUDIES:
        told = results_page.about(name)
        assert told.title and len(told.title) < 80 and not told.title.endswith(".")
        assert all(text.endswith((".", "?")) for text in (told.source, told.expect, told.question))


def test_the_page_has_a_section_for_each_study_as_its_profile_describes_it() -> None:
    page = results_page.PAGE.read_text()
    for name in STUDIES:
        told = results_page.about(name)
        head = results_page.section(told, "").rpartition("<!-- end")[0].strip()
        assert head in page, f"the section of {name} differs from its profile: run the study again, or edit the section"


def test_a_result_replaces_only_its_own_section(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# Studies\n\nAn introduction.\n")
    told = results_page.about("atime"), results_page.about("mpm")
    for one in told:
        results_page.write(one.name, results_page.section(one, "first result"), page)
    result = results_page.result_of(a_study(tmp_path), "2026-11-22 12:00, short form")
    results_page.write("atime", results_page.section(told[0], result), page)
    text = page.read_text()
    assert text.startswith("# Studies\n\nAn introduction.\n\n<!-- atime -->\n## atime: noatime for a file")
    atime, _, mpm = text.partition("<!-- end of atime -->")
    assert "first result" not in atime and "first result" in mpm
    assert "2026-11-22 12:00, short form\n\n`GET http://web1/ · open 800/s`\n\n| variant" in atime
    assert "<details><summary>Runs and observations</summary>\n\n- atime of small.txt: unchanged\n\n</details>" in atime
    assert "### atime" not in atime and "Is it cheaper?" not in atime


def test_conclusive_comparisons_are_counted_without_the_controls(tmp_path: Path) -> None:
    verdicts = [("equivalent", True, None), ("better", False, None), ("equivalent", False, "differs")]
    tally = results_page.tally(a_study(tmp_path, *verdicts, ("inconclusive", False, None), ("invalid", False, None)))
    assert (tally.total, tally.conclusive, tally.contradicted) == (4, 2, 1)
    assert str(tally + tally).startswith("4 of 8 comparisons conclusive (")
    assert str(tally + tally).endswith(", 2 contradicted by the A/A control")


def test_two_results_disagree_where_only_one_is_better_or_worse(tmp_path: Path) -> None:
    words = ["better", "worse", "equivalent", "inconclusive", "better", "better"]
    again = ["better", "equivalent", "inconclusive", "worse", "worse", "better"]
    earlier, later = (
        a_study(tmp_path / name, *((word, number == 5, None) for number, word in enumerate(told)))
        for name, told in (("earlier", words), ("later", again))
    )
    assert results_page.disagreements(earlier, later) == [
        "b1 vs a at 8 warm: worse, then equivalent",
        "b3 vs a at 8 warm: inconclusive, then worse",
        "b4 vs a at 8 warm: better, then worse",
    ]
    assert results_page.disagreements(earlier, earlier) == []

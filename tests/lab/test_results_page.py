"""profiles/README.md: one section per shipped study, and results that replace only their section."""

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


def write_study(folder: Path, *verdicts: tuple[str, bool, str | None]) -> Path:
    """Write a study's folder with verdicts: outcome, whether it is the A/A control, contradiction."""
    folder.mkdir(exist_ok=True)
    (folder / "result.md").write_text(RESULT)
    entries = [
        {
            "verdict": {"outcome": outcome, "text": f"b{number}: {outcome}"},
            "control": control,
            "contradiction": contradiction,
        }
        | {"first": "a", "other": f"b{number}", "level": 8, "pass_name": "warm"}
        for number, (outcome, control, contradiction) in enumerate(verdicts)
    ]
    (folder / "result.json").write_text(json.dumps({"verdicts": entries}))
    return folder


def test_shipped_profiles_have_title_source_and_expectation() -> None:
    shipped = {path.stem for path in results_page.PROFILES.glob("*.toml") if "[study]" in path.read_text()}
    assert shipped == set(STUDIES)
    for name in STUDIES:
        about = results_page.about(name)
        assert about.title and len(about.title) < 80 and not about.title.endswith(".")
        assert all(text.endswith((".", "?")) for text in (about.source, about.expect, about.question))


def test_page_sections_match_profiles() -> None:
    page = results_page.PAGE.read_text()
    for name in STUDIES:
        about = results_page.about(name)
        head = results_page.section(about, "").rpartition("<!-- end")[0].strip()
        assert head in page, f"the section of {name} differs from its profile: run the study again, or edit the section"


def test_result_replaces_only_its_section(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# Studies\n\nAn introduction.\n")
    studies = results_page.about("atime"), results_page.about("mpm")
    for about in studies:
        results_page.write(about.name, results_page.section(about, "first result"), page)
    result = results_page.result_of(write_study(tmp_path), "2026-11-22 12:00, short form")
    results_page.write("atime", results_page.section(studies[0], result), page)
    text = page.read_text()
    assert text.startswith("# Studies\n\nAn introduction.\n\n<!-- atime -->\n## atime: noatime for a file")
    atime, _, mpm = text.partition("<!-- end of atime -->")
    assert "first result" not in atime and "first result" in mpm
    assert "2026-11-22 12:00, short form\n\n`GET http://web1/ · open 800/s`\n\n| variant" in atime
    assert "<details><summary>Runs and observations</summary>\n\n- atime of small.txt: unchanged\n\n</details>" in atime
    assert "### atime" not in atime and "Is it cheaper?" not in atime


def test_tally_excludes_controls(tmp_path: Path) -> None:
    verdicts = [("equivalent", True, None), ("better", False, None), ("equivalent", False, "differs")]
    tally = results_page.tally(
        write_study(tmp_path, *verdicts, ("inconclusive", False, None), ("invalid", False, None))
    )
    assert (tally.total, tally.conclusive, tally.contradicted) == (4, 2, 1)
    assert str(tally + tally).startswith("4 of 8 comparisons conclusive (")
    assert str(tally + tally).endswith(", 2 contradicted by the A/A control")


def test_results_disagree_if_only_one_is_better_or_worse(tmp_path: Path) -> None:
    before = ["better", "worse", "equivalent", "inconclusive", "better", "better"]
    after = ["better", "equivalent", "inconclusive", "worse", "worse", "better"]
    earlier, later = (
        write_study(tmp_path / name, *((outcome, number == 5, None) for number, outcome in enumerate(outcomes)))
        for name, outcomes in (("earlier", before), ("later", after))
    )
    assert results_page.disagreements(earlier, later) == [
        "b1 vs a at 8 warm: worse, then equivalent",
        "b3 vs a at 8 warm: inconclusive, then worse",
        "b4 vs a at 8 warm: better, then worse",
    ]
    assert results_page.disagreements(earlier, earlier) == []


def test_short_forms_are_one_section(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "atime", ("better", False, None), ("equivalent", True, None))
    rows = results_page.short_rows("atime", folder)
    assert rows == ["| `atime` | b1: equivalent |", "| `atime` | b0: better |"], "the A/A control is first"
    page = tmp_path / "README.md"
    page.write_text("# Studies\n")
    for run in ("first day", "second day"):
        results_page.write(
            results_page.SHORT_FORMS, results_page.short_section(rows, run, results_page.tally(folder)), page
        )
    text = page.read_text()
    assert "first day" not in text
    assert "## All in short form\n\nsecond day\n\n1 of 1 comparisons conclusive (1 better)" in text
    assert "|---|---|\n| `atime` | b1: equivalent |\n| `atime` | b0: better |\n<!-- end of short forms -->" in text

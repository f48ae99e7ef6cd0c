"""profiles/README.md: one section per shipped study, and results that replace only their section."""

import json
from pathlib import Path

from cockpit.report.study import DETAILS
from tests.lab import results_page
from tests.lab.studies import STUDIES

RESULT = f"### atime\n\nIs it cheaper?\n\n`GET http://web1/`\n\n| variant |\n|---|\n\n{DETAILS}\n\n- atime: unchanged"


def write_study(folder: Path, *verdicts: tuple[str, bool, str | None]) -> Path:
    """Write a study's folder with verdicts: outcome, whether it is the A/A control, contradiction."""
    folder.mkdir(exist_ok=True)
    (folder / "result.md").write_text(RESULT)
    entries = [
        {"verdict": {"outcome": outcome, "text": outcome}, "control": control, "contradiction": contradiction}
        for outcome, control, contradiction in verdicts
    ]
    (folder / "result.json").write_text(json.dumps({"verdicts": entries}))
    return folder


def test_page_has_sections_of_shipped_profiles() -> None:
    shipped = {path.stem for path in results_page.PROFILES.glob("*.toml") if "[study]" in path.read_text()}
    assert shipped == set(STUDIES)
    page = results_page.PAGE.read_text()
    for name in STUDIES:
        about = results_page.about(name)
        assert about.title and len(about.title) < 80 and about.source and about.expect
        head = results_page.section(about, "").rpartition("<!-- end")[0].strip()
        assert head in page, f"the section of {name} differs from its profile: run the study again, or edit the section"


def test_results_are_counted_and_replace_only_their_section(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# Studies\n")
    study = write_study(tmp_path / "1", ("equivalent", True, None), ("better", False, None), ("invalid", False, "no"))
    results_page.write("mpm", results_page.section(results_page.about("mpm"), "first result"), page)
    for result in ("first result", results_page.result_of(study, "short form")):
        results_page.write("atime", results_page.section(results_page.about("atime"), result), page)
    rows = results_page.short_rows("atime", study)
    section = results_page.short_section(rows, "today", results_page.tally(study))
    results_page.write(results_page.SHORT_FORMS, section, page)
    text = page.read_text()
    assert text.count("first result") == 1 and text.index("first result") < text.index("<!-- end of mpm -->")
    assert "short form\n\n`GET http://web1/`\n\n| variant |" in text and "Is it cheaper?" not in text
    assert "<details><summary>Runs and observations</summary>\n\n- atime: unchanged\n\n</details>" in text
    assert "today\n\n1 of 2 comparisons conclusive (1 better, 1 invalid), 1 contradicted by the A/A control." in text
    assert "| `atime` | equivalent |\n| `atime` | better |\n| `atime` | invalid |\n<!-- end of short forms -->" in text

"""profiles/README.md: one section per shipped study."""

from tests.lab import results_page
from tests.lab.studies import STUDIES


def test_page_has_sections_of_shipped_profiles() -> None:
    shipped = {path.stem for path in results_page.PROFILES.glob("*.toml") if "[study]" in path.read_text()}
    assert shipped == set(STUDIES)
    page = results_page.PAGE.read_text()
    for name in STUDIES:
        about = results_page.about(name)
        assert about.title and len(about.title) < 80 and about.source and about.expect
        head = results_page.section(about, "").rpartition("<!-- end")[0].strip()
        assert head in page, f"the section of {name} differs from its profile: run the study again, or edit the section"

"""The version of HTTP in labels and reports."""

from msgspec.structs import replace

from cockpit.analysis.words.timeline import load_words
from cockpit.model.load.plan import LoadPlan
from cockpit.report.words import plan_words

PLAN = LoadPlan(url="http://a/", concurrency=4, requests=100)


def test_labels_tell_the_versions_apart() -> None:
    assert load_words(PLAN) == "c=4"
    assert load_words(replace(PLAN, http="2")) == "c=4 h2"
    assert load_words(replace(PLAN, http="2", streams=10)) == "c=4 h2×10"
    assert load_words(replace(PLAN, http="2", rate=500.0)) == "500/s h2"


def test_the_plan_of_a_report_has_streams() -> None:
    words = plan_words(replace(PLAN, http="2", streams=10, keepalive=True))
    assert words == "GET http://a/ · closed c=4 n=100 · HTTP/2 · 10 streams per connection · keep-alive"
    assert "HTTP" not in plan_words(PLAN)

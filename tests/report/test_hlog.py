"""The log is parsed by HdrHistogram's own reader: same number of values, same percentiles."""

from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from cockpit.model.errors import UsageError
from cockpit.model.fold import fold_all
from cockpit.model.metrics import run_result
from cockpit.report.hlog import HlogWriter
from tests.session.events import small_session


def test_log_is_readable_by_standard_reader(tmp_path: Path) -> None:
    events = list(small_session())
    writer = HlogWriter(tmp_path / "run.hlog")
    for event in events:
        writer.take([event])
    writer.close()
    assert writer.trouble == ""
    reader = HistogramLogReader(str(tmp_path / "run.hlog"), HdrHistogram(1, 1 << 43, 3))
    intervals = []
    while (interval := reader.get_next_interval_histogram()) is not None:
        intervals.append(interval)
    reader.close()
    whole = HdrHistogram(1, 1 << 43, 3)
    for interval in intervals:
        whole.add(interval)
    assert len(intervals) == 40
    assert whole.get_total_count() == 8000
    state = fold_all(events)
    result = run_result(state, 1)
    assert result is not None
    assert abs(whole.get_value_at_percentile(99) / 1e9 - result.counts.service.percentile(99)) < 0.0002


def test_unwritable_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        HlogWriter(tmp_path / "none" / "run.hlog")
    (tmp_path / "old.hlog").write_text("kept")
    with pytest.raises(UsageError, match="exists already"):
        HlogWriter(tmp_path / "old.hlog")
    assert (tmp_path / "old.hlog").read_text() == "kept"

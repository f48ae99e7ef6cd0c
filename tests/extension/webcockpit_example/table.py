"""An export format: a line per run."""

from collections.abc import Iterator

from cockpit.cli.export_formats import ExportFormat
from cockpit.metrics.results import all_results
from cockpit.model.state import State


def runs(state: State) -> Iterator[str]:
    for result in all_results(state):
        yield f"{result.run}\t{result.counts.completed}\n"


FORMAT = ExportFormat("tsv", "completed responses per run", "webcockpit_example.table:runs")

"""Reads XML of JMeter (`jmeter.save.saveservice.output_format=xml`) as the rows of its CSV. Pure.

A sample within a sample is a part of it, unless the outer one is a transaction. The lines begin with the root element,
so no document type can define entities. A file that is cut off is read up to there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from xml.parsers import expat

# Start of the message in rows of transactions.
TRANSACTION = "Number of samples in transaction :"
_SAMPLES = ("httpSample", "sample")
_TITLES = {
    "ts": "timeStamp",
    "t": "elapsed",
    "lb": "label",
    "rc": "responseCode",
    "rm": "responseMessage",
    "tn": "threadName",
    "s": "success",
    "by": "bytes",
}
# Maximum characters of a URL, and maximum depth of samples.
_URL, _DEPTH = 8192, 64


class _Rows:
    """Collects rows of samples at their ends; `open` are the samples around the current element."""

    def __init__(self) -> None:
        self.ready: list[Mapping[str, str]] = []
        self._open: list[dict[str, str]] = []
        self._in_url = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in _SAMPLES:
            if len(self._open) >= _DEPTH:
                raise ValueError("samples are nested too deeply")
            self._open.append({title: attributes[key] for key, title in _TITLES.items() if key in attributes})
        self._in_url = name == "java.net.URL" and bool(self._open)

    def text(self, text: str) -> None:
        if self._in_url:
            self._open[-1]["URL"] = (self._open[-1].get("URL", "") + text)[:_URL]

    def end(self, name: str) -> None:
        self._in_url = False
        if name in _SAMPLES and self._open:
            row = self._open.pop()
            if all(outer.get("responseMessage", "").startswith(TRANSACTION) for outer in self._open):
                self.ready.append(row)


def xml_rows(lines: Iterable[str]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the samples with the number of the line of their end. Raises ValueError."""
    rows, parser = _Rows(), expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = rows.start, rows.end
    parser.CharacterDataHandler = rows.text
    for number, line in enumerate(lines, 1):
        try:
            parser.Parse(line)
        except (expat.ExpatError, ValueError) as error:
            raise ValueError(f"line {number}: {error}") from None
        yield from ((number, row) for row in rows.ready)
        rows.ready = []

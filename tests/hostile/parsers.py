"""Every parser of hostile input with small intact inputs: fed with mutations, it returns or raises its own errors only.

`python -m tests.hostile.parsers COUNT` feeds COUNT mutations to each, on all CPUs, and prints a table.
"""

import multiprocessing
import os
import random
import re
import sys
import time
import tomllib
import zlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

from cockpit.analysis.thresholds import parse_threshold
from cockpit.analysis.warnings import run_warnings
from cockpit.export.hlog import run_log
from cockpit.hosts.command_output import OutputLines
from cockpit.hosts.probe.frames import FrameReader
from cockpit.hosts.status.feed import parse_page
from cockpit.imports.hlog import hlog_run
from cockpit.imports.known_formats import format_of
from cockpit.imports.runs import run_of
from cockpit.imports.sar_text import parse_sar
from cockpit.imports.session import ForeignHost, session_of
from cockpit.imports.summaries import Summary, parse_oha, parse_wrk, run_of_summary
from cockpit.imports.sysstat import SysstatHost, parse_sysstat
from cockpit.load.chain import extract_value
from cockpit.load.failures import Malformed
from cockpit.load.http.cookies import CookieJar
from cockpit.load.http.responses import HeadCache, ResponseReader
from cockpit.metrics.results import run_result
from cockpit.model import events as ev
from cockpit.model.errors import HostError, UsageError
from cockpit.model.fold.fold import fold_all
from cockpit.model.host.samples import StatusKind
from cockpit.model.load.plan import Extraction
from cockpit.profiles.reader import parse_profile
from cockpit.recording.packing import Damaged, checksum, compressed, unpack
from cockpit.recording.pages import PageSeries
from cockpit.recording.schema import from_row, to_row
from cockpit.servers import registry
from cockpit.servers.editing import ConfigError
from cockpit.servers.inventory import parse_inventory
from cockpit.session.selectors import parse_source
from cockpit.tuning.pending import outcome
from tests.data import data_of
from tests.hostile.probe_fuzz import FACTS, frame, mutated
from tests.hosts.pages import PAGES
from tests.imports.test_sysstat import file_of, intervals_of
from tests.session.events import small_session

DATA = data_of(__file__)

_SHORT = 100.0
TESTS = Path(__file__).parents[1]
RESULTS = TESTS / "imports" / "results"
RESPONSES = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\nSet-Cookie: a=b; Max-Age=9; Path=/x\r\n\r\nhello world",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;a=b\r\n!\r\n0\r\nX: y\r\n\r\n",
)
UNDONE = b"confirmed\nfile 1 restored\nvalue 1 30\ntest 1 0\nreload 1 7 syntax error\nreloaded\n"


class Parser(NamedTuple):
    """`refusals`: exceptions of invalid input, each with one line."""

    seeds: tuple[bytes, ...]
    parse: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...] = ()


def _sites(kind: str, data: bytes) -> object:
    return registry.SITES[kind]([data.decode("utf-8", "replace")], "/etc", {})


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").splitlines(keepends=True)


def _requests(data: bytes) -> object:
    lines = _lines(data) or [""]
    form = format_of(lines[0])
    found = list(form.read(iter(lines)))
    if not found:
        return None
    # A run has a tick per second: those of days take seconds each.
    span = max(one.start + one.seconds for one in found) - min(one.start for one in found)
    return run_of(found, form) if span < _SHORT else None


def _summary(read: Callable[[Iterator[str]], Summary], data: bytes) -> None:
    result = run_result(fold_all(session_of("x", 0.0, run_of_summary(read(iter(_lines(data)))))), 1)
    assert result is not None and result.counts.failed <= result.counts.ended and run_warnings(result)
    assert 0 <= result.counts.latency.percentile(50) <= result.counts.latency.max


def _host(parse: Callable[[list[str]], SysstatHost], data: bytes) -> None:
    assert fold_all(session_of("x", 1.8e9, None, [ForeignHost("web1", parse(_lines(data)), "x.txt")])).ended


def _response(data: bytes) -> object:
    reader = ResponseReader(HeadCache(bodiless=False, keepalive=True))
    jar = CookieJar("web1", secure=False)
    jar.store(data, b"/x/y", 1.7e9)
    extract_value(Extraction(name="a", source="header", expression="set-cookie"), data, b"")
    return [reader.feed(data[at : at + 50]) for at in range(0, len(data), 50)], jar.header(b"/x", 1.7e9)


def _frame(data: bytes) -> object:
    reader = FrameReader()
    return [reader.feed(line) for line in data.split(b"\n")]


def _event(number: int, kind: str, t: float, data: bytes) -> object:
    values = (number, t, kind, data)
    return from_row((*values, checksum(values)))


def _grammar(kind: str, name: str, section: str, data: bytes) -> object:
    return registry.GRAMMARS[kind].read(data, name, section if section.encode() in data and section else None)


@cache
def parsers() -> dict[str, Parser]:
    found = dict(_imports())
    for kind in get_args(StatusKind):
        found[f"status page: {kind}"] = Parser((PAGES[kind].encode()[:2000],), partial(parse_page, kind), (HostError,))
    for path in sorted((TESTS / "servers" / "grammars").glob("*.toml")):
        file = tomllib.loads(path.read_text())
        first = (
            next((block["set"][0] for block in file.get("text", ()) if "set" in block), None)
            or file.get("set", [None])[0]
        )
        name, section = file.get("place") or first[:2]
        texts = (
            "".join(file.get("pieces", ())),
            *(block["text"] for block in file.get("text", ())),
            *_texts(file.get("set", ())),
        )
        seeds = tuple(re.sub("[«»]", "", text).encode() for text in texts if len(text) > 30)
        parse = partial(_grammar, path.stem, name, section or "")
        found[f"configuration: {path.stem}"] = Parser(seeds, parse, (ConfigError,))
    for case in tomllib.loads((TESTS / "servers" / "test_site_logs.toml").read_text())["case"]:
        seeds = tuple(text.encode() for text in case["texts"])
        found[f"sites: {case['kind']}"] = Parser(seeds, partial(_sites, case["kind"]))
    inventory = (TESTS / "servers" / "every_kind.txt").read_bytes()
    logs = tomllib.loads((TESTS / "servers" / "access_logs.toml").read_text())
    events = {ev.kind(event): to_row(1, event) for event in small_session()}
    found |= {
        "access logs": Parser(tuple(text.encode() for text in _texts(logs)), registry.parse_access),
        "inventory of a host": Parser(
            (inventory,),
            lambda data: registry.running_servers(
                parse_inventory(data.decode("utf-8", "replace"), registry.FILES, registry.TEXTS)
            ),
        ),
        "frames of the probe": Parser((FACTS + frame(1),), _frame, (ValueError,)),
        "output of tails": Parser((b"a\x1b[31mb\rc\nd\n",), lambda data: OutputLines().feed(data, 100, 1000)),
        "outcome of an undo": Parser((UNDONE,), outcome),
        "HTTP responses, cookies, extraction": Parser(RESPONSES, _response, (Malformed,)),
        "JSON extraction": Parser(
            (b'{"a":[{"b":"x"}],"c":1e5}',),
            lambda data: extract_value(Extraction(name="a", source="json", expression="a.0.b"), b"", data),
        ),
        "profiles": Parser(
            tuple(sorted((path.read_bytes() for path in TESTS.parent.glob("profiles/*.toml")), key=len)[:3]),
            lambda data: parse_profile(data.decode("utf-8", "replace"), "x", "x.toml"),
            (UsageError,),
        ),
        "thresholds": Parser(
            (b"p99<50ms", b"web1.cpu.idle>5%", b"rate>-3%"),
            lambda data: parse_threshold(data.decode("utf-8", "replace")),
            (UsageError,),
        ),
        "selectors": Parser(
            (b"a.cockpit#2", b"a@10s..20s"), lambda data: parse_source(data.decode("utf-8", "replace")), (UsageError,)
        ),
        "packed series of a recording": Parser(
            (b"\x92\x90\x81\xa4web1\x90",), lambda data: unpack(compressed(data), PageSeries, "x"), (Damaged,)
        ),
    }
    for name, row in events.items():
        body = row[3] if isinstance(row[3], bytes) else row[3].encode()
        plain = zlib.decompress(body) if isinstance(row[3], bytes) else body
        found[f"event: {name}"] = Parser(
            (plain,), lambda data, row=row: _event(1, row[2], row[1], _packed(data)), (Damaged,)
        )
    return found


def _packed(data: bytes) -> bytes:
    return zlib.compress(data, 1)


def _texts(value: Any) -> Iterator[str]:
    """All texts of nested tables."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _imports() -> Iterator[tuple[str, Parser]]:
    def first(name: str, lines: int = 6) -> bytes:
        return b"".join((RESULTS / name).read_bytes().splitlines(keepends=True)[:lines])

    for name in DATA["imports_cases"]:
        yield f"import: {name}", Parser((first(name),), _requests, (ValueError,))
    for tool, seeds, read in (
        ("wrk", (first("wrk.txt", 99), first("wrk2.txt", 999), first("wrk2_stalled.txt", 99)), parse_wrk),
        ("oha", (first("oha.json", 999),), parse_oha),
    ):
        yield f"import: {tool}", Parser(seeds, partial(_summary, read), (ValueError,))
    sadf = file_of(intervals_of(2)).encode()
    for tool, seed, parse in (("sar", first("sar.txt", 99), parse_sar), ("sadf", sadf, parse_sysstat)):
        yield f"import: {tool}", Parser((seed,), partial(_host, parse), (ValueError,))
    hlog = "".join([*run_log(small_session(), 1)][:7]).encode()
    yield "import: HdrHistogram log", Parser((hlog,), lambda data: hlog_run(_lines(data)), (ValueError,))


# Maximum CPU time (s) of a parser per CPU.
LONGEST = 90.0


class Outcome(NamedTuple):
    inputs: int
    refused: int
    seconds: float
    problem: str


def feed(name: str, count: int, seed: int) -> Outcome:
    """Feed mutations to a parser; `problem`: the first exception that is not one of its refusals, with its input."""
    parser, rng, refused = parsers()[name], random.Random(f"{name} {seed}"), 0
    begun, seconds, inputs, problem = time.process_time(), 0.0, 0, ""
    while inputs < count and seconds < LONGEST and not problem:
        data = mutated(rng.choice(parser.seeds), rng)
        inputs += 1
        try:
            parser.parse(data)
        except parser.refusals as error:
            refused += 1
            problem = f"several lines: {error} {data!r}" if "\n" in str(error) else ""
        except Exception as error:
            problem = f"{error!r} {data!r}"
        seconds = time.process_time() - begun
    return Outcome(inputs, refused, seconds, problem)


def _feed(job: tuple[str, int, int]) -> tuple[str, Outcome]:
    return job[0], feed(*job)


def main(count: int) -> int:
    """Print the table; return 1 if a parser raised something else than its refusals."""
    parts = os.cpu_count() or 1
    jobs = [(name, count // parts, part) for name in parsers() for part in range(parts)]
    total: dict[str, list[Outcome]] = {}
    print(f"{'parser':38} {'inputs':>8} {'refused':>8} {'CPU s':>7}")
    with multiprocessing.Pool(parts) as pool:
        for name, found in pool.imap(_feed, jobs):
            outcomes = total.setdefault(name, [])
            outcomes.append(found)
            if len(outcomes) == parts:
                inputs, refused, seconds = (sum(one[place] for one in outcomes) for place in range(3))
                problem = next((f"  FAILED: {one.problem[:2000]}" for one in outcomes if one.problem), "")
                print(f"{name:38} {inputs:>8} {refused:>8} {seconds:>7.1f}{problem}", flush=True)
    return int(any(one.problem for outcomes in total.values() for one in outcomes))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))

"""`pytest -p tests.shared_collection --forks 5`: collect the tests once, and run them in forked processes.

Each process of xdist imports and collects all tests, which takes 6 s of CPU time; forks share them. A process reads the
number of its next group, as of xdist's loadgroup, from a pipe until that is empty, and sends reports through its own.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from multiprocessing import connection, get_context
from typing import Any

import pytest

Groups = Sequence[Sequence[pytest.Item]]
# Bytes of a group's number in the pipe.
_WIDTH = 2


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, help="number of processes, forked after the collection")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in forks. Exits with the tests that were running in processes that have crashed."""
    forks = session.config.option.forks
    if not forks or session.testsfailed or session.config.option.collectonly:
        return None
    groups: dict[str, list[pytest.Item]] = {}
    for item in session.items:
        mark = item.get_closest_marker("xdist_group")
        groups.setdefault(mark.args[0] if mark else item.nodeid, []).append(item)
    queue, filler = os.pipe()
    os.write(filler, b"".join(number.to_bytes(_WIDTH) for number in range(len(groups))))
    os.close(filler)
    if commands := sys.modules.get("tests.commands"):
        commands.share_fork_server()
    running = dict(_fork(session, [*groups.values()], queue, number) for number in range(forks))
    started: dict[Any, str] = {}
    crashed = []
    while running:
        for results in connection.wait(running, timeout=1.0):
            try:
                data = results.recv()
            except EOFError:
                crashed.append(running.pop(results))
                continue
            if data is None:
                running.pop(results).join()
                started.pop(results, None)
            elif isinstance(data, str):
                started[results] = data
            else:
                _log(session.config, data)
        # Programs that a crashed process has started can hold its end of the pipe open.
        for results in [each for each in running if not running[each].is_alive() and not each.poll()]:
            crashed.append(running.pop(results))
    if crashed:
        pytest.exit(f"{len(crashed)} of {forks} processes crashed in {', '.join(started.values())}", returncode=1)
    return True


def _fork(session: pytest.Session, groups: Groups, queue: int, number: int) -> tuple[Any, Any]:
    """Return a new process, after its results: names of started tests, reports, and None at the end."""
    results, sender = connection.Pipe(duplex=False)
    process = get_context("fork").Process(target=_run, args=(session, groups, queue, number, sender))
    process.start()
    sender.close()
    return results, process


def _log(config: pytest.Config, data: dict[str, Any]) -> None:
    report = config.hook.pytest_report_from_serializable(config=config, data=data)
    config.hook.pytest_runtest_logreport(report=report)
    if report.when == "teardown":
        config.hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)


class _Reporter:
    """Takes the place of the terminal reporter: sends reports to the main process, which prints them."""

    def __init__(self, config: pytest.Config, sender: Any) -> None:
        self._config, self._sender = config, sender
        # Of pytest's terminal reporter; explanations of failed assertions are highlighted with it.
        self._tw = config.get_terminal_writer()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._sender.send(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._sender.send(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))


def _run(session: pytest.Session, groups: Groups, queue: int, number: int, sender: Any) -> None:
    """Run groups in this process, with output and temporary files of its own, until none is left."""
    os.environ["PYTEST_XDIST_WORKER"] = f"gw{number}"
    plugins = session.config.pluginmanager
    capture = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    reporter = _Reporter(session.config, sender)
    plugins.unregister(name="terminalreporter")
    plugins.register(reporter, "terminalreporter")
    with suppress(KeyboardInterrupt):
        try:
            for item, following in pairwise(chain(_items(groups, queue), (None,))):
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        finally:
            session.config.hook.pytest_sessionfinish(session=session, exitstatus=0)
            sender.send(None)


def _items(groups: Groups, queue: int) -> Iterator[pytest.Item]:
    while number := os.read(queue, _WIDTH):
        yield from groups[int.from_bytes(number)]

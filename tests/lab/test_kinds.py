"""Each kind of server with its packaged configuration beside a second instance: found, examined, tuned, watched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import chain

import pytest
import pytest_asyncio
from msgspec.structs import replace

from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob
from cockpit.profiles.reader import parse_profile
from cockpit.profiles.writing import profile_text
from cockpit.setup.doctor_host import diagnose_host
from cockpit.setup.profile_draft import HostSurvey, draft_of
from cockpit.tuning.server_discovery import DiscoveredHost, discover
from cockpit.tuning.tuner import Tuner
from tests.lab.command_host import by_command
from tests.lab.kinds import (
    KindCase,
    KindChange,
    apache,
    caddy,
    gunicorn,
    haproxy,
    lighttpd,
    mariadb,
    nginx,
    php_fpm,
    squid,
    varnish,
)
from tests.lab.lab import Host, Lab
from tests.lab.test_knobs import by_ssh, config
from tests.lab.test_status_pages import host as watched
from tests.lab.test_status_pages import watching
from tests.tuning.conftest import until

_KINDS = (apache, nginx, haproxy, lighttpd, squid, php_fpm, mariadb, gunicorn, varnish, caddy)
CASES = tuple(kind.CASE for kind in _KINDS)
WITH_PAGE = tuple(case for case in CASES if case.page)
pytestmark = [pytest.mark.asyncio(loop_scope="module")]


class KindHost:
    """A host with both instances of a kind, and what discovery found there."""

    def __init__(self, case: KindCase, host: Host, shell: Shell, found: DiscoveredHost) -> None:
        self.case = case
        self.host = host
        self.shell = shell
        self.found = found

    def knob(self, name: str) -> Knob:
        return next(one.knob for one in self.found.offered if one.knob.name == name)

    def output(self, command: str) -> str:
        return self.host.run(command, check=False).stdout.strip()


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def instances(lab: Lab, request: pytest.FixtureRequest) -> Iterator[tuple[KindCase, Host]]:
    case: KindCase = request.param
    lab.web1.run(f"{{ set -e; {case.start}\n}} >/tmp/{case.name}.out 2>&1")
    try:
        yield case, lab.web1
    finally:
        lab.web1.run(f"{{ {case.stop}\n}} >/dev/null 2>&1", check=False)


@asynccontextmanager
async def discovered(instances: tuple[KindCase, Host], reach: Callable[[Host], HostConfig]) -> AsyncIterator[KindHost]:
    case, host = instances
    shell = await open_shell(reach(host), host.ssh_config)
    try:
        yield KindHost(case, host, shell, await discover(shell, "web1", case.port))
    finally:
        await shell.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kind(instances: tuple[KindCase, Host]) -> AsyncIterator[KindHost]:
    """Over SSH; discovered once for all tests, which leave everything as it was."""
    async with discovered(instances, by_ssh) as found:
        yield found


async def test_both_instances_are_found_and_the_doctor_is_content(kind: KindHost) -> None:
    case, servers = kind.case, [one for one in kind.found.servers if one.title.startswith(kind.case.title)]
    assert len(servers) == 2 and len({one.startup for one in servers}) == 2
    offered = {(one.knob.host, one.knob.name) for one in kind.found.offered}
    changed = [("web1", change.knob) for change in chain(case.changes, *case.later)]
    assert set(changed) <= offered
    config = HostConfig(name="web1", ssh="web1")
    draft = draft_of(f"http://localhost:{case.port}/", [HostSurvey(config, kind.found)], changed)
    text = profile_text(draft)
    helped = [kind.knob(name).help for _, name in changed if not kind.knob(name).option]
    assert all(f"# {line}\n[[knob]]" in text for line in helped)
    profile = parse_profile(text, "new", "new")
    findings = await diagnose_host(profile, profile.hosts[0], kind.host.ssh_config)
    assert [finding for finding in findings if finding.level == "error"] == []


async def test_each_knob_is_set_active_and_undone_byte_for_byte(instances: tuple[KindCase, Host]) -> None:
    """Over a host that is reached by a command; the other tests of the file use SSH."""
    async with discovered(instances, by_command) as kind:
        case = kind.case
        tuner = Tuner(port_on=lambda _: case.port)
        before, second = config(kind.host, case.places), kind.output(case.second)
        for changes in (case.changes, *case.later):
            values = {change.knob: await tuner.read(kind.shell, kind.knob(change.knob)) for change in changes}
            inactive = [change for change in _steady(changes) if kind.output(change.command) != change.active]
            assert inactive == _steady(changes)
            applied = await tuner.apply(kind.shell, "web1", [(kind.knob(one.knob), one.value) for one in changes])
            try:
                for change in changes:
                    await _active(kind, change)
                    value = await tuner.read(kind.shell, kind.knob(change.knob))
                    assert value in (change.value, change.active)
                assert config(kind.host, case.places) != before
                shown = [name for name in case.shown if any(f" shows {name} " in note for note in applied.notes)]
                assert changes is not case.changes or shown == list(case.shown), applied.notes
                assert not [note for note in applied.notes if "its reload is not confirmed" in note]
                assert applied.inactive or not [note for note in applied.notes if ", not " in note]
            finally:
                await tuner.undo(kind.shell, applied)
            assert config(kind.host, case.places) == before and kind.output(case.second) == second
            for change in changes:
                assert await tuner.read(kind.shell, kind.knob(change.knob)) == values[change.knob]


def _steady(changes: Iterable[KindChange]) -> list[KindChange]:
    """Without counts of processes, of which a server may start another one by itself."""
    return [change for change in changes if "pgrep -c" not in change.command]


async def _active(kind: KindHost, change: KindChange) -> None:
    outputs = [""]

    def is_active() -> bool:
        outputs.append(kind.output(change.command))
        return outputs[-1] == change.active

    try:
        await until(is_active)
    except TimeoutError:
        raise AssertionError(f"{change.knob}: {outputs[-1]!r} after {len(outputs) - 1} readings") from None


async def test_the_second_instance_is_changed_alone(kind: KindHost) -> None:
    changes, before = kind.case.apart, config(kind.host, kind.case.places)
    knobs = [kind.knob(change.knob) for change in changes]
    inactive = [change._replace(active=kind.output(change.command)) for change in changes]
    steady = _steady(kind.case.changes)
    first = {one.knob: kind.output(one.command) for one in steady}
    assert {knob.file for knob in knobs}.isdisjoint(kind.knob(one.knob).file for one in kind.case.changes)
    assert [old.knob for old, change in zip(inactive, changes, strict=True) if old.active == change.active] == []
    values = [change.value for change in changes]
    applied = await Tuner().apply(kind.shell, "web1", list(zip(knobs, values, strict=True)))
    for change in changes:
        await _active(kind, change)
    assert {one.knob: kind.output(one.command) for one in steady} == first
    await Tuner().undo(kind.shell, applied)
    for change in inactive:
        await _active(kind, change)
    assert config(kind.host, kind.case.places) == before


async def test_an_invalid_value_never_reaches_the_server(kind: KindHost) -> None:
    name, value, words = kind.case.malformed
    with pytest.raises(ChangeRefused) as refused:
        await Tuner().apply(kind.shell, "web1", [(kind.knob(name), value)])
    assert str(refused.value) == words


async def test_a_value_that_the_servers_test_refuses_is_rolled_back(kind: KindHost) -> None:
    before, active = config(kind.host, kind.case.places), kind.output(kind.case.changes[0].command)
    name, value, words = kind.case.failing
    knob = kind.knob(name)
    knob = replace(knob, directive=kind.case.unchecked or knob.directive)
    with pytest.raises(ChangeRolledBack, match=words):
        await Tuner().apply(kind.shell, "web1", [(knob, value)])
    assert config(kind.host, kind.case.places) == before and kind.output(kind.case.changes[0].command) == active


@pytest.mark.parametrize("instances", WITH_PAGE, indirect=True, ids=lambda case: case.name)
async def test_the_status_agrees_with_the_servers_own_tool(lab: Lab, instances: tuple[KindCase, Host]) -> None:
    case, host = instances
    assert case.page
    async with watching(watched("web1", case.page), lab.ssh_config) as session:
        await session.until(lambda: session.page.t is not None and not session.page.detail)
        await asyncio.to_thread(host.run, case.load)
        await session.until(lambda: bool(session.page.rates))

        def agrees() -> bool:
            """Whether the newest page and the other count agree: a request may have come between both."""
            rows = [line.strip().partition("=") for line in host.run(case.own).stdout.strip().splitlines()]
            return all(session.page.values.get(name) == float(value) for name, _, value in rows)

        await session.until(agrees)

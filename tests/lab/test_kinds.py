"""Each kind of server with its packaged configuration beside a second instance: found, tuned, watched, loaded."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from msgspec.structs import replace

from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.metrics.results import RunResult
from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob
from cockpit.profiles.reader import parse_profile
from cockpit.profiles.writing import profile_text
from cockpit.setup.doctor_host import diagnose_host
from cockpit.setup.profile_draft import HostSurvey, draft_of
from cockpit.tuning.discovery.servers import DiscoveredHost, discover
from cockpit.tuning.tuner import Tuner
from tests.lab.kinds import (
    Change,
    KindCase,
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
from tests.lab.profile_runs import runs_of, shipped
from tests.lab.watching import watching
from tests.waiting import until

_KINDS = (apache, nginx, haproxy, lighttpd, squid, php_fpm, mariadb, gunicorn, varnish, caddy)
CASES = tuple(kind.CASE for kind in _KINDS)
pytestmark = pytest.mark.asyncio(loop_scope="module")

Check = Callable[[RunResult, RunResult], bool]


def more_responses(limit: float) -> Check:
    """Few requests at the same time have at most `limit` responses/s, and many have more."""
    # On a busy machine 2.2 times was seen.
    return lambda few, many: few.rate <= 1.1 * limit and many.rate > 1.5 * few.rate


def fewer_connections(new: RunResult, kept: RunResult) -> bool:
    # On a busy machine ten responses per connection were seen.
    each = new.counts.connect.count >= new.counts.completed > 0
    return each and kept.counts.connect.count < kept.counts.completed / 4


def fewer_bytes(compressed: RunResult, plain: RunResult) -> bool:
    sizes = [one.counts.body_bytes / one.counts.completed for one in (compressed, plain)]
    return sizes[0] < sizes[1] / 2


class Effect(NamedTuple):
    """Two values of knobs of the shipped profile with the kind's name, and whether two runs show their effect."""

    first: dict[str, str | None]
    second: dict[str, str | None]
    shows: Check


KEPT = "max-keep-alive-requests"
EFFECTS = {
    "php-fpm": Effect({"pm": "static", "pm.max_children": "2"}, {"pm.max_children": "10"}, more_responses(2 / 0.05)),
    "haproxy": Effect({"maxconn": "2"}, {"maxconn": "20"}, more_responses(2 / 0.05)),
    "gunicorn": Effect({"workers": "1"}, {"workers": "8"}, more_responses(1 / 0.02)),
    # A few of the 40 URLs are cached by the requests before the first change.
    "varnish": Effect({"default_ttl": "0"}, {"default_ttl": "120"}, more_responses(8 / 0.05)),
    "lighttpd": Effect({KEPT: "0"}, {KEPT: "1000"}, fewer_connections),
    "caddy": Effect({"encode": "gzip"}, {"encode": None}, fewer_bytes),
}


class KindHost(NamedTuple):
    """A host with both instances of a kind, a shell on it by SSH, and what discovery found there."""

    case: KindCase
    host: Host
    shell: Shell
    found: DiscoveredHost

    def knob(self, name: str) -> Knob:
        return next(one.knob for one in self.found.suggested if one.knob.name == name)

    def pairs(self, changes: Iterable[Change]) -> list[tuple[Knob, str]]:
        return [(self.knob(change.knob), change.value) for change in changes]

    def output(self, command: str) -> str:
        return self.host.run(command, check=False).stdout.strip()

    def outputs(self, changes: Iterable[Change]) -> list[str]:
        return [self.output(change.command) for change in changes]

    def files(self) -> str:
        return self.host.files(self.case.places)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CASES, ids=lambda case: case.name)
async def kind(lab: Lab, request: pytest.FixtureRequest) -> AsyncIterator[KindHost]:
    """Both instances of a kind, discovered once for all tests, which leave everything as it was."""
    case, host = request.param, lab.web1
    host.run(f"{{ set -e; {case.start}\n}} >/tmp/{case.name}.out 2>&1")
    try:
        shell = await open_shell(HostConfig(name="web1", ssh="web1"), host.ssh_config)
        yield KindHost(case, host, shell, await discover(shell, "web1", case.port))
        await shell.close()
    finally:
        host.run(f"{{ {case.stop}\n}} >/dev/null 2>&1", check=False)


async def test_both_instances_are_found_and_the_doctor_is_content(kind: KindHost) -> None:
    case, servers = kind.case, [one for one in kind.found.servers if one.title.startswith(kind.case.title)]
    assert len(servers) == 2 and len({one.startup for one in servers}) == 2
    offered = {(one.knob.host, one.knob.name) for one in kind.found.suggested}
    changed = [("web1", change.knob) for change in chain(case.changes, *case.later)]
    assert set(changed) <= offered
    config = HostConfig(name="web1", ssh="web1")
    text = profile_text(draft_of(f"http://localhost:{case.port}/", [HostSurvey(config, kind.found)], changed))
    helped = [kind.knob(name).help for _, name in changed if not kind.knob(name).option]
    assert all(f"# {line}\n[[knob]]" in text for line in helped)
    profile = parse_profile(text, "new", "new")
    findings = await diagnose_host(profile, profile.hosts[0], kind.host.ssh_config)
    assert [finding for finding in findings if finding.level == "error"] == []


async def test_each_knob_is_set_active_and_undone_byte_for_byte(kind: KindHost) -> None:
    shell, case = kind.shell, kind.case
    tuner = Tuner(port_on=lambda _: case.port)
    before, second = kind.files(), kind.output(case.second)
    for changes in (case.changes, *case.later):
        values = [await tuner.read(shell, kind.knob(change.knob)) for change in changes]
        inactive = [change for change in _steady(changes) if kind.output(change.command) != change.active]
        assert inactive == _steady(changes)
        applied = await tuner.apply(shell, "web1", kind.pairs(changes))
        try:
            for change in changes:
                await _active(kind, change)
                assert await tuner.read(shell, kind.knob(change.knob)) in (change.value, change.active)
            assert kind.files() != before
            shown = [name for name in case.shown if any(f" shows {name} " in note for note in applied.notes)]
            assert changes is not case.changes or shown == list(case.shown), applied.notes
            assert not [note for note in applied.notes if "its reload is not confirmed" in note]
            assert applied.inactive or not [note for note in applied.notes if ", not " in note]
        finally:
            await tuner.undo(shell, applied)
        assert kind.files() == before and kind.output(case.second) == second
        assert [await tuner.read(shell, kind.knob(change.knob)) for change in changes] == values


def _steady(changes: Sequence[Change]) -> list[Change]:
    """Without counts of processes, of which a server may start another one by itself."""
    return [change for change in changes if "pgrep -c" not in change.command]


async def _active(kind: KindHost, change: Change) -> None:
    outputs = [""]

    def is_active() -> bool:
        outputs.append(kind.output(change.command))
        return outputs[-1] == change.active

    try:
        await until(is_active)
    except TimeoutError:
        raise AssertionError(f"{change.knob}: {outputs[-1]!r} after {len(outputs) - 1} readings") from None


async def test_the_second_instance_is_changed_alone(kind: KindHost) -> None:
    changes, before = kind.case.apart, kind.files()
    values = kind.outputs(changes)
    steady = _steady(kind.case.changes)
    assert {kind.knob(one.knob).file for one in changes}.isdisjoint(kind.knob(one.knob).file for one in steady)
    assert not [change for change, value in zip(changes, values, strict=True) if change.active == value]
    applied = await Tuner().apply(kind.shell, "web1", kind.pairs(changes))
    for change in changes:
        await _active(kind, change)
    first = kind.outputs(steady)
    await Tuner().undo(kind.shell, applied)
    for change, value in zip(changes, values, strict=True):
        await _active(kind, change._replace(active=value))
    assert kind.outputs(steady) == first
    assert kind.files() == before


async def test_invalid_values_are_refused_by_cockpit_or_by_the_servers_test(kind: KindHost) -> None:
    before, active = kind.files(), kind.output(kind.case.changes[0].command)
    name, value, words = kind.case.malformed
    with pytest.raises(ChangeRefused) as refused:
        await Tuner().apply(kind.shell, "web1", [(kind.knob(name), value)])
    assert str(refused.value) == words
    name, value, words = kind.case.failing
    knob = kind.knob(name)
    knob = replace(knob, directive=kind.case.unchecked or knob.directive)
    with pytest.raises(ChangeRolledBack, match=words):
        await Tuner().apply(kind.shell, "web1", [(knob, value)])
    assert kind.files() == before and kind.output(kind.case.changes[0].command) == active


async def test_the_status_agrees_with_the_servers_own_tool_and_a_profile_shows_its_effect(kind: KindHost) -> None:
    case, host = kind.case, kind.host
    assert case.page or case.name in EFFECTS
    if case.page:
        async with watching("web1", host.ssh_config, case.page) as watch:
            await watch.shows(lambda: watch.page.t is not None and not watch.page.detail)
            await asyncio.to_thread(host.run, case.load)
            await watch.shows(lambda: bool(watch.page.rates))

            def agrees() -> bool:
                """Whether the newest page and the other count agree: a request may have come between both."""
                rows = [line.strip().partition("=") for line in host.run(case.own).stdout.strip().splitlines()]
                return all(watch.page.values.get(name) == float(value) for name, _, value in rows)

            await watch.shows(agrees)
    if case.name in EFFECTS:
        first, second, shows = EFFECTS[case.name]
        before = kind.files()
        results: list[Any] = await runs_of(
            shipped(case.name, {"web1": host.address}, 1.0),
            (first, second),
            host.ssh_config,
            shows=lambda *results: len(results) < 2 or shows(*results),
        )
        assert shows(*results), results
        assert kind.files() == before

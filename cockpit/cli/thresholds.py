"""Thresholds and limits of a profile and of the command line, checked against the hosts of the profile."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.analysis.guard import parse_guard
from cockpit.analysis.thresholds import Threshold, distinct, parse_threshold
from cockpit.metrics.values import is_host_metric
from cockpit.model.errors import ProfileError, UsageError
from cockpit.profiles.profile import Profile


def check_guard(profile: Profile) -> None:
    """Raises UsageError if a limit of changes is invalid."""
    key = f"{profile.name}: guard"
    try:
        limits = [limit.text for text in profile.guard for limit in parse_guard(text)]
    except UsageError as error:
        raise ProfileError(f"{key}: {error}") from None
    thresholds_for(key, limits, [], [host.name for host in profile.hosts])


def thresholds_of(profile: Profile, more: list[str]) -> tuple[Threshold, ...]:
    """Return the thresholds of the profile and the command line. Raises ProfileError, UsageError."""
    hosts = [host.name for host in profile.hosts]
    return thresholds_for(f"{profile.name}: check.thresholds", profile.thresholds, more, hosts)


def thresholds_for(key: str, own: Sequence[str], more: Sequence[str], hosts: list[str]) -> tuple[Threshold, ...]:
    """Parse `own` (of the profile's `key`) and `more` (of the command line). Raises ProfileError, UsageError."""
    try:
        parsed = [_threshold(text, hosts) for text in own]
    except UsageError as error:
        raise ProfileError(f"{key}: {error}") from None
    return distinct((*parsed, *(_threshold(text, hosts) for text in more)))


def _threshold(text: str, hosts: list[str]) -> Threshold:
    threshold = parse_threshold(text)
    host, _, rest = threshold.name.partition(".")
    if is_host_metric(rest) and host not in hosts:
        raise UsageError(f"{text!r}: no host {host!r} is watched; hosts of this profile: {', '.join(hosts) or 'none'}")
    return threshold

"""Profile for an argument PROFILE|URL, with the flags of the command applied."""

from __future__ import annotations

import socket
import sys
from argparse import Namespace
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from cockpit.cli.load_plan import errors_name_flags, is_there, with_flags
from cockpit.cli.trust_prompt import require_trust
from cockpit.model.errors import UnknownProfile, UsageError
from cockpit.model.host.samples import GeneratorConfig
from cockpit.model.load.checks import check_plan, conflict
from cockpit.model.load.plan import LoadPlan
from cockpit.model.study import with_address
from cockpit.model.text import sanitize
from cockpit.profiles import catalogue
from cockpit.profiles.plan import is_address, make_plan, until_verdict, without_credentials
from cockpit.profiles.profile import Profile
from cockpit.profiles.reader import read_profile
from cockpit.profiles.sections import LoadSection, TargetSection

# Maximum length of a name in an error.
_MAX_NAME = 200


def chosen_profile(options: Namespace) -> Profile:
    """Return the profile, or one made of a URL, with the flags applied. Raises UsageError, ProfileError."""
    profile = named_profile(options.target)
    require_trust(profile, options.target, accepted=options.trust)
    with errors_name_flags():
        plan = with_flags(profile.plan, options)
        if plan.variants and options.duration is not None:
            plan = until_verdict(plan, options.duration)
        check_plan(plan)
    return _profiled(_from_machines(at_address(replace(profile, plan=plan), options.ssh_config), options), options)


def named_profile(target: str) -> Profile:
    """Return the profile with this path or name, or one made of a URL. Raises UsageError, ProfileError, also for
    invalid thresholds and limits."""
    profile = _resolved(target)
    check_limits(profile)
    return profile


def check_limits(profile: Profile) -> None:
    """Raises ProfileError for an invalid threshold, or an invalid limit of changes."""
    if profile.thresholds or profile.guard:
        # Imported here, so that a load of a URL starts sooner.
        from cockpit.cli.thresholds import check_guard, thresholds_of

        thresholds_of(profile, [])
        check_guard(profile)


def _resolved(target: str) -> Profile:
    if "://" in target:
        return _profile_of_url(target)
    path = Path(target)
    if "/" in target and is_there(path):
        return read_profile(path)
    known = catalogue.find(target)
    others = [_path_given(path) for path in catalogue.shadowed_profiles(target)]
    if known is not None:
        if others:
            print(
                f"cockpit: {target}: using {known}; other files need their path: {', '.join(others)}", file=sys.stderr
            )
        return read_profile(known)
    if is_address(target):
        return _profile_of_url(target)
    name = without_credentials(target)
    name = name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}…"
    raise UnknownProfile(f"{name or repr('')}: no such profile; {_next_step(target, others)}")


def _profile_of_url(url: str) -> Profile:
    with errors_name_flags():
        return Profile.of_url(make_plan(TargetSection(url=url), LoadSection()))


def _next_step(target: str, files: list[str]) -> str:
    if files:
        return f"a file needs a path: {', '.join(files)}"
    names = catalogue.names()
    near = get_close_matches(target, names, 1) if len(target) <= _MAX_NAME else []
    known = f"a file needs a path (./x.toml); known profiles: {', '.join(names) or 'none'}"
    return f"a URL is http://host or host:port; {f'did you mean {near[0]}?' if near else known}"


def _path_given(path: Path) -> str:
    return sanitize(str(path) if path.is_absolute() else f"./{path}")


def at_address(profile: Profile, ssh_config: Path | None) -> Profile:
    """Return the profile; if only ssh_config can resolve the target's name, with its address."""
    name = urlsplit(profile.plan.url).hostname
    if not profile.hosts or not name:
        return profile
    return replace(profile, plan=with_address(profile.plan, addresses_of([name], ssh_config)))


def _from_machines(profile: Profile, options: Namespace) -> Profile:
    """Return the profile with the generators or the cluster of the flags. Raises UsageError if both are given."""
    if options.generators and options.cluster:
        raise UsageError(conflict("--cluster"), "--generators")
    if options.cluster:
        return replace(profile, cluster=options.cluster, generators=())
    if options.generators:
        return replace(profile, generators=tuple(GeneratorConfig(name=name, ssh=name) for name in options.generators))
    return profile


def _profiled(profile: Profile, options: Namespace) -> Profile:
    """Return the profile with CPU profiles of all hosts if --profile is given. Raises UsageError without hosts."""
    if options.profile is None:
        return profile
    if not profile.hosts:
        raise UsageError("no host is watched; name it in the [[host]] of a profile: cockpit help profile", "--profile")
    hz, call_graph = options.profile
    hosts = (replace(host, profile=hz, call_graph=call_graph or host.call_graph) for host in profile.hosts)
    return replace(profile, hosts=tuple(hosts))


def print_replay(plan: LoadPlan) -> None:
    """Print the numbers of replayed and of skipped requests of a plan that replays a log. Raises UsageError."""
    if plan.replay is None:
        return
    from cockpit.load.log_reader import read_log

    log = read_log(plan)
    for line in (log.summary, *log.warnings):
        print(f"cockpit: {line}", file=sys.stderr)


def addresses_of(names: Iterable[str], ssh_config: Path | None) -> dict[str, str]:
    """Return the `HostName` from ssh_config of each name that no resolver knows."""
    return {name: address for name in names if (address := _address(name, ssh_config))}


def _address(name: str, ssh_config: Path | None) -> str:
    from cockpit.hosts.ssh.settings import Destination, read_settings

    try:
        socket.getaddrinfo(name, None)
        return ""
    except OSError:
        settings = read_settings(Destination(name), ssh_config)
        return "" if settings.host == name else settings.host

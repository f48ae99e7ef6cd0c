"""A profile, checked: what the rest of the program takes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob
from cockpit.model.load import LoadPlan
from cockpit.profiles.plan import Wrong, make_plan
from cockpit.profiles.sections import ProfileFile


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is the file's, without its ending. `thresholds` are expressions, not yet parsed."""

    name: str
    question: str = ""
    plan: LoadPlan
    hosts: tuple[HostConfig, ...] = ()
    knobs: tuple[Knob, ...] = ()
    thresholds: tuple[str, ...] = ()


def to_profile(name: str, file: ProfileFile, folder: Path = Path()) -> Profile:
    """`folder` is what file names in the profile are relative to. Raises Wrong."""
    _names_once("host", [host.name for host in file.host])
    _names_once("knob", [knob.name for knob in file.knob])
    hosts = {host.name for host in file.host}
    for knob in file.knob:
        if knob.host not in hosts:
            allowed = ", ".join(sorted(hosts)) or "none is defined"
            raise Wrong(f"knob {knob.name}.host", f"found {knob.host!r}; allowed: a [[host]] of this file ({allowed})")
    return Profile(
        name=name,
        question=file.question.strip(),
        plan=make_plan(file.target, file.load, file.tls, file.request, folder),
        hosts=tuple(msgspec.convert(msgspec.to_builtins(host), HostConfig) for host in file.host),
        knobs=tuple(msgspec.convert(msgspec.to_builtins(knob), Knob) for knob in file.knob),
        thresholds=file.check.thresholds,
    )


def _names_once(key: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Wrong(f"{key}.name", f"found {twice[0]!r} twice; allowed: each name once")

"""Check the knobs of a profile by their kind."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from cockpit.model.knobs import LIVE_KNOBS, Knob
from cockpit.model.load.checks import Invalid, conflict
from cockpit.profiles.sections import AUTO, Host, KnobSection
from cockpit.servers import systemd
from cockpit.servers.registry import DIRECTIVES, GRAMMARS, RELOAD_REPLACES

_DIRECTIVE = ("file", "directive", "test", "reload")
# Required keys per kind; optional keys per kind, beside the keys that all kinds have.
NEEDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(DIRECTIVES, _DIRECTIVE),
    "keyvalue": ("file", "key"),
    systemd.KIND: ("file", "directive", "get", "reload"),
    **{kind.name: kind.needs for kind in LIVE_KNOBS.values()},
}
_OPTIONAL: dict[str, tuple[str, ...]] = {
    **{kind: ("section", "get") if grammar.sections else ("get",) for kind, grammar in GRAMMARS.items()},
    **{kind.name: kind.may for kind in LIVE_KNOBS.values()},
}
_KIND_KEYS = ("file", "section", "directive", "key", "mount", "option", "get", "set")


def to_knob(section: KnobSection, host: Host) -> Knob:
    """Return the knob of a section, with the defaults of its kind and host. Raises Invalid."""
    key = f"knob {section.name}"
    # A directive that a command sets in the running server needs no reload.
    is_live = section.kind in DIRECTIVES and section.set
    needed = (*_DIRECTIVE[:-1], "get", "set") if is_live else NEEDS[section.kind]
    for name in needed:
        if not getattr(section, name):
            raise Invalid(f"{key}.{name}", f"missing; a knob of kind {section.kind} needs {', '.join(needed)}")
    if section.kind in GRAMMARS and section.get and not section.set and not section.reload:
        raise Invalid(f"{key}.reload", "missing; a knob with get and without set is changed by a reload")
    allowed = (*needed, *_OPTIONAL.get(section.kind, ()))
    for name in _KIND_KEYS:
        if getattr(section, name) and name not in allowed:
            raise Invalid(f"{key}.{name}", f"found in a knob of kind {section.kind}; allowed: {', '.join(allowed)}")
    _check_values(key, section)
    if section.option:
        _check_options(key, section)
    workers = _workers(section, host) if section.workers == AUTO else section.workers
    return replace(msgspec.convert(section, Knob, from_attributes=True), workers=workers)


def _check_values(key: str, section: KnobSection) -> None:
    ranged = section.min is not None or section.max is not None
    if section.values and (ranged or section.option):
        raise Invalid(f"{key}.values", conflict("min, max or option", "use one of them to limit the values"))
    if section.min is not None and section.max is not None and section.min > section.max:
        raise Invalid(f"{key}.min", f"found {section.min:g}; allowed: at most max, {section.max:g}")
    allowed_values = LIVE_KNOBS[section.kind].values if section.kind in LIVE_KNOBS else ()
    if allowed_values and not set(section.values) <= set(allowed_values):
        raise Invalid(f"{key}.values", f"found {', '.join(section.values)}; allowed: {', '.join(allowed_values)}")


def _check_options(key: str, section: KnobSection) -> None:
    names = [option.name for option in section.option]
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise Invalid(f"{key}.option", f"found {', '.join(names)}; allowed: two or more, each name once")
    tests = [option for option in section.option if option.when]
    if section.get and tests:
        raise Invalid(f"{key}.get", conflict("option.when", "use one get, or when in each option"))
    if not section.get and len(tests) < len(names):
        raise Invalid(
            f"{key}.option", "an option has no when, and the knob no get; use one get, or when in each option"
        )


def _workers(section: KnobSection, host: Host) -> str:
    """Return the first process pattern of the host whose processes a reload of this kind replaces; "" if none."""
    known = RELOAD_REPLACES.get(section.kind, ())
    return next((pattern for pattern in host.processes if any(name in pattern for name in known)), "")

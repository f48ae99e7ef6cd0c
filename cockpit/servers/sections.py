"""Candidates for settings in sections of a server's configuration, e.g. maxconn in a frontend. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice

from cockpit.servers.editing import ConfigError
from cockpit.servers.kind import CandidateKnob, RunningServer
from cockpit.servers.registry import DIRECTIVES, KINDS

# Characters that are replaced in the name of a knob, and the maximum length of the section's part.
_UNSAFE = re.compile(r"[^A-Za-z0-9_.]+")
_LABEL_CHARS = 40
# Maximum number of candidates: a configuration can have thousands of sections.
_MAX_CANDIDATES = 100


def in_sections(server: RunningServer, texts: Mapping[str, str]) -> tuple[CandidateKnob, ...]:
    """Return candidates by the texts of the server's files; none if the server has no other candidate."""
    return tuple(islice(_candidates(server, texts), _MAX_CANDIDATES))


def _candidates(server: RunningServer, texts: Mapping[str, str]) -> Iterator[CandidateKnob]:
    like = next((candidate for candidate in server.candidates if candidate.directive), None)
    kind = next((kind for kind in KINDS if like and kind.name == like.kind), None)
    if like is None or kind is None:
        return
    every_text = "\n".join(texts.values())
    choices = kind.choices(every_text) if kind.choices else {}
    by_file = {file: _sections(kind.name, text, frozenset(kind.settings)) for file, text in texts.items()}
    every = {name for sections in by_file.values() for names in sections.values() for name in names}
    for file, sections in by_file.items():
        for section, names in sections.items():
            header = kind.header(section)
            if not header:
                continue
            unset = {name for name in kind.in_sections.get(header[0], ()) if choices.get(name) and name not in every}
            unset |= {name for name in kind.in_sections.get(header[0], ()) if name not in choices}
            for name in sorted(names | unset):
                label = _UNSAFE.sub("-", " ".join(header[1:])).strip("-") or header[0]
                candidate = like._replace(
                    name=f"{name.replace(' ', '-')}-{label[:_LABEL_CHARS]}",
                    file=file,
                    section=section,
                    directive=name,
                    values=choices.get(name, ()),
                    usual=False,
                )
                # Only if the section sets it: no command could restore the default of an unset one, which can depend
                # on other settings.
                yield kind.live(candidate, every_text) if kind.live and name in names else candidate


def _sections(kind: str, text: str, names: frozenset[str]) -> dict[str, set[str]]:
    """Return the settings in each section, with the parameters, set or not, that a directive in it can have."""
    grammar, raw = DIRECTIVES[kind], text.encode()
    directives = {parameter.directive for parameter in grammar.parameters.values()}
    try:
        sections = grammar.sections_of(raw, names | directives)
    except ConfigError:
        return {}
    for section, contained in sections.items():
        for name, parameter in grammar.parameters.items():
            if parameter.directive in contained:
                with suppress(ConfigError):
                    grammar.read(raw, name, section)
                    contained.add(name)
        contained -= directives - names
    return sections

"""profiles/README.md: the shipped studies with their questions, sources, expectations and results.

Each study has a section between two markers. A result replaces only the section of its study.
"""

from __future__ import annotations

import json
import os
import platform
import re
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cockpit.report.study import DETAILS
from tests.lab.keeper import REPOSITORY

PROFILES = REPOSITORY / "profiles"
PAGE = PROFILES / "README.md"
CONCLUSIVE = ("better", "worse", "equivalent")
SHORT_FORMS = "short forms"


class About(NamedTuple):
    """Description of a study in its profile: title, source of the original, expectation, and a remark (or "") about
    differences from the original."""

    name: str
    title: str
    question: str
    source: str
    expect: str
    note: str


@dataclass(frozen=True)
class Tally:
    """Planned comparisons of studies by outcome, without A/A controls, and the number contradicted by a control."""

    outcomes: Counter[str]
    contradicted: int

    @property
    def total(self) -> int:
        return self.outcomes.total()

    @property
    def conclusive(self) -> int:
        """Number of comparisons that are better, worse or equivalent."""
        return sum(self.outcomes[outcome] for outcome in CONCLUSIVE)

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.outcomes + other.outcomes, self.contradicted + other.contradicted)

    def __str__(self) -> str:
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.most_common())
        conclusive = f"{self.conclusive} of {self.total} comparisons conclusive"
        return f"{conclusive} ({outcomes}), {self.contradicted} contradicted by the A/A control"


def about(name: str) -> About:
    """Read the comments at the head of a shipped profile: a title, then `Source:`, `Expect:` and perhaps `Note:`."""
    text = (PROFILES / f"{name}.toml").read_text()
    lines: list[str] = []
    for line in text.splitlines()[1:]:
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    title, *rest = re.split(r"(Source|Expect|Note): ", " ".join(line for line in lines if line))
    parts = {key: part.strip() for key, part in zip(rest[::2], rest[1::2], strict=True)}
    question = " ".join(tomllib.loads(text)["question"].split())
    return About(name, title.strip(), question, parts["Source"], parts["Expect"], parts.get("Note", ""))


def section(description: About, result: str) -> str:
    """Return a study's section with its markers."""
    begin, end = _markers(description.name)
    paragraphs = [
        f"## {description.name}: {description.title}",
        description.question,
        f"**Source** {description.source[:1].upper() + description.source[1:]}",
        f"**Expected, with the server as the limit** {description.expect[:1].upper() + description.expect[1:]}",
        *([f"**Note** {description.note}"] if description.note else []),
        result.strip(),
    ]
    return begin + "\n\n".join(paragraphs) + "\n" + end


def result_of(folder: Path, run: str) -> str:
    """Return a study's markdown without heading and question, with folded details. `run`: time and machine."""
    text = (folder / "result.md").read_text()
    # The section has its own heading and question.
    _, _, body = text.partition("\n\n`")
    head, found, details = f"`{body}".partition(DETAILS)
    folded = f"\n<details><summary>{DETAILS.rstrip(':')}</summary>{details}\n\n</details>" if found else ""
    return f"{run}\n\n{head.rstrip()}\n{folded}"


def tally(folder: Path) -> Tally:
    """Count the planned comparisons of a study's result."""
    verdicts = [verdict for verdict in _verdicts(folder) if not verdict["control"]]
    outcomes = Counter(each["verdict"]["outcome"] for each in verdicts)
    return Tally(outcomes, sum(each["contradiction"] is not None for each in verdicts))


def short_rows(name: str, folder: Path) -> list[str]:
    """Return the table rows of a study's comparisons, those with the A/A control first: study, verdict."""
    verdicts = sorted(_verdicts(folder), key=lambda each: not each["control"])
    return [f"| `{name}` | {each['verdict']['text']} |" for each in verdicts]


def short_section(rows: Sequence[str], run: str, tally: Tally) -> str:
    """Return the section of a run of all studies in short form. `run`: time, duration and machine."""
    begin, end = _markers(SHORT_FORMS)
    table = ["| study | verdict |", "|---|---|", *rows]
    return begin + "\n\n".join(["## All in short form", run, f"{tally}.", "\n".join(table)]) + f"\n{end}"


def _verdicts(folder: Path) -> list[dict[str, Any]]:
    verdicts: list[dict[str, Any]] = json.loads((folder / "result.json").read_text())["verdicts"]
    return verdicts


def run_words(form: str, cpus: str, seconds: float) -> str:
    """Return date, form, duration, machine and CPUs of a study in one line."""
    when = time.strftime("%Y-%m-%d %H:%M")
    return f"{when}, {form} form, {seconds / 60:.0f} min; {machine()}; {cpus}."


def machine() -> str:
    """Return CPUs, memory, kernel and Python version in one line."""
    rows = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((row.partition(":")[2].strip() for row in rows if row.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kernel = platform.release().partition("-")[0]
    return f"{os.cpu_count()} x {model}, {memory:.0f} GiB, Linux {kernel}, Python {platform.python_version()}"


def write(name: str, new: str, page: Path = PAGE) -> None:
    """Replace a study's section in the page, or append it."""
    text = page.read_text()
    begin, end = _markers(name)
    if begin not in text:
        page.write_text(f"{text.rstrip()}\n\n{new}")
        return
    before, _, rest = text.partition(begin)
    page.write_text(f"{before}{new}{rest.partition(end)[2]}")


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"

"""For files with conditions, repeats, comments and synonyms, cockpit shows the value that the program uses, or refuses.

Each file is made of the pieces of its kind, and the program itself says which value it uses: Apache, squid, lighttpd,
PHP, PHP-FPM, MariaDB and systemd print the configuration that they read; HAProxy and nginx run with it; a shell and
Python run the file. A file that the program refuses is left out. `N` in a piece is a number that occurs once.
"""

import os
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.servers.editing import ConfigError
from cockpit.servers.registry import GRAMMARS
from tests.lab.oracles import KINDS, Kind, Question, ask

FILES = int(os.environ.get("COCKPIT_ORACLE_FILES", "12"))


def made(kind: Kind, chance: random.Random) -> str:
    """Return the text of a file: lines, and blocks of lines, in any order."""
    numbers = iter(chance.sample(range(100, 300), 200))
    text = "".join(f"{piece}\n" for piece in pieces(kind, chance, 2))
    parts = f"{kind.head}{text}{kind.tail}".split("«N»")
    return parts[0] + "".join(f"{next(numbers)}{part}" for part in parts[1:])


def pieces(kind: Kind, chance: random.Random, depth: int) -> Iterator[str]:
    for _ in range(chance.randint(1, 4)):
        if depth and kind.blocks and chance.random() < 0.4:
            first, *others = chance.choice(kind.blocks)
            yield first
            for part in others:
                yield from pieces(kind, chance, depth - 1)
                yield part
        else:
            yield chance.choice(kind.lines)


def number(value: str | None) -> str | None:
    """Return the last number of a value, without quotes and units."""
    return re.findall(r"\d+|$", value)[-2] if value and re.search(r"\d", value) else value


def outcomes(kind: Kind, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield an outcome per file, and its text if it is wrong."""
    chance = random.Random(f"{kind.title} {FILES}")
    grammar = GRAMMARS[kind.grammar]
    files = [made(kind, chance) for _ in range(FILES)]
    asked = [Question(text, name, section or None) for text in files for name, section in [chance.choice(kind.asked)]]
    changed: list[Question] = []
    for question, answer in zip(asked, ask(kind, asked, folder), strict=True):
        text = question.text.encode()
        if answer == "invalid":
            yield answer, ""
            continue
        try:
            found = grammar.read(text, question.name, question.section)
        except ConfigError:
            yield "refused", ""
            continue
        if number(found.value) != answer:
            yield "wrong", f"{question}\nshows {found.value}, uses {answer}"
            continue
        yield "equal" if answer is not None else "both unset", ""
        try:
            new = grammar.encode_in(text, question.name, question.section, kind.new, found.raw)
            after = grammar.change(text, question.name, new, question.section).decode()
        except ConfigError:
            continue
        changed.append(question._replace(text=after))
    for question, answer in zip(changed, ask(kind, changed, folder), strict=True):
        is_right = answer == number(kind.new)
        yield ("changed", "") if is_right else ("wrong", f"{question}\nchanged to {kind.new}, uses {answer}")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_value_that_the_program_uses_is_shown_or_refused(kind: Kind) -> None:
    with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
        Path(folder).chmod(0o755)
        found = list(outcomes(kind, Path(folder)))
    counts = Counter(outcome for outcome, _ in found)
    print(f"{kind.title}: {', '.join(f'{count} {outcome}' for outcome, count in sorted(counts.items()))}")
    wrong = [text for outcome, text in found if outcome == "wrong"]
    assert not wrong, f"{len(wrong)} wrong of {FILES}, the shortest:\n{min(wrong, key=len)}"
    assert counts["equal"] and counts["changed"]

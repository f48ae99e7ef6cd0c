"""`cockpit help`: what there is to know beyond the flags, by topic."""

from __future__ import annotations

import difflib
import shutil
import sys
from argparse import Namespace

from cockpit.cli.terminal import tell
from cockpit.cli.texts import text, topics
from cockpit.model.errors import EXIT_GOOD, UsageError
from cockpit.model.text import neutral

# Longer lines are hard to read.
_WIDEST = 100


def help_topic(options: Namespace) -> int:
    """The topics, or the text of one: laid out on a terminal, as it is elsewhere."""
    known = topics()
    if options.topic is None:
        width = max(map(len, known))
        lines = [f"  {name:<{width}}  {title}" for name, title in known.items()]
        tell("\n".join(["cockpit help TOPIC tells of:", *lines, "", "cockpit COMMAND --help tells a command's flags."]))
        return EXIT_GOOD
    if options.topic not in known:
        raise UsageError(_unknown(options.topic, list(known)))
    if sys.stdout.isatty():
        _lay_out(text(options.topic))
    else:
        tell(text(options.topic).rstrip("\n"))
    return EXIT_GOOD


def _unknown(topic: str, known: list[str]) -> str:
    near = difflib.get_close_matches(topic.lower(), known, n=1, cutoff=0.4)
    guess = f"did you mean {near[0]}? " if near else ""
    return f"{neutral(topic)!r}: no such topic; {guess}there are {', '.join(known)}"


def _lay_out(markdown: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    # Rich's own colours are made for a dark terminal; weight tells as much on every one.
    plain = {
        "markdown.code": "bold",
        "markdown.h2": "bold underline",
        "markdown.table.header": "dim",
        "markdown.table.border": "dim",
    }
    console = Console(width=min(_WIDEST, shutil.get_terminal_size().columns), theme=Theme(plain))
    console.print(Markdown(markdown, code_theme="ansi_dark"))

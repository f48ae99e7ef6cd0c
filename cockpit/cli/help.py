"""`cockpit help`: topics beyond the flags, and the flags of a command."""

from __future__ import annotations

import difflib
import shutil
import sys
from argparse import Namespace

from cockpit.cli.arguments import make_parser
from cockpit.cli.help_topics import text, topics
from cockpit.cli.terminal import tell
from cockpit.model.errors import EXIT_GOOD, UsageError
from cockpit.model.text import neutral

# Longer lines are hard to read.
_WIDEST = 100


def help_topic(options: Namespace) -> int:
    """Print the topics, the text of one, or a command's flags. Raises UsageError for another name."""
    known, commands = topics(), make_parser().commands
    if options.topic is None:
        width = max(map(len, known))
        lines = [f"  {name:<{width}}  {title}" for name, title in known.items()]
        tell("\n".join(["cockpit help TOPIC:", *lines, "", "cockpit COMMAND --help: a command's flags"]))
        return EXIT_GOOD
    if options.topic not in known and options.topic in commands:
        commands[options.topic].print_help()
        return EXIT_GOOD
    if options.topic not in known:
        raise UsageError(_unknown(options.topic, list(known), list(commands)))
    if sys.stdout.isatty():
        _lay_out(text(options.topic))
    else:
        tell(text(options.topic).rstrip("\n"))
    return EXIT_GOOD


def _unknown(topic: str, known: list[str], commands: list[str]) -> str:
    near = difflib.get_close_matches(topic.lower(), [*known, *commands], n=1, cutoff=0.5)
    guess = f"did you mean {near[0]}? " if near else ""
    return f"{neutral(topic)!r}: unknown topic; {guess}topics: {', '.join(known)}; or a command"


def _lay_out(markdown: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    # Rich's colours suit dark terminals only; weight is readable on all.
    plain = {
        "markdown.code": "bold",
        "markdown.h2": "bold underline",
        "markdown.table.header": "dim",
        "markdown.table.border": "dim",
    }
    console = Console(width=min(_WIDEST, shutil.get_terminal_size().columns), theme=Theme(plain))
    console.print(Markdown(markdown, code_theme="ansi_dark"))

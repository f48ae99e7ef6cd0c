"""Where a block of Lua code ends inside an nginx configuration. Pure."""

from __future__ import annotations

import re

from cockpit.servers.editing import ConfigError, line_number

# A comment or a long string, `--[==[`, `[==[`; a line comment; a quoted string, closed or not; a brace.
_PART = re.compile(rb"(?:--)?\[(=*)\[|--[^\n]*|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|[{}]", re.DOTALL)


def block_end(text: bytes, start: int) -> int:
    """The position of the `}` that ends the block whose content begins at `start`. Raises ConfigError."""
    depth, at = 1, start
    while part := _PART.search(text, at):
        at = part.end()
        if part[0] == b"{":
            depth += 1
        elif part[0] == b"}":
            depth -= 1
            if depth == 0:
                return part.start()
        elif part[1] is not None:
            closing = text.find(b"]" + part[1] + b"]", at)
            at = len(text) if closing < 0 else closing + len(part[1]) + 2
    raise ConfigError("a block of Lua code is never closed", line_number(text, start))

"""Types of text that redaction treats in a special way: everywhere else they are plain `str`."""

from __future__ import annotations

from typing import Annotated

# A name given by the profile or the kernel: never changed, because other events and the program refer to it.
Name = Annotated[str, "name"]
# A URL: its host and port are names.
Url = Annotated[str, "url"]

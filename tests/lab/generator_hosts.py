"""Lab hosts as generators: a Python on each that finds this cockpit."""

from __future__ import annotations

import shlex
import sys
import sysconfig
from collections.abc import Iterable

from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Lab

# On a host only the system's Python can be seen; its version is that of the tests.
PYTHON = "/usr/local/bin/cockpit-python"


def give_python(lab: Lab, names: Iterable[str]) -> None:
    """Write PYTHON on hosts: the system's, with this cockpit and its dependencies."""
    paths = f"{REPOSITORY}:{sysconfig.get_path('purelib')}"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    script = shlex.quote(f'#!/bin/sh\nPYTHONPATH={paths} exec /usr/bin/python{version} "$@"\n')
    for name in names:
        lab.hosts[name].run(f"printf %s {script} >{PYTHON} && chmod 755 {PYTHON}")

"""Lab hosts as generators: a Python on each host that imports this cockpit."""

import shlex
import sys
import sysconfig
from collections.abc import Iterable

from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Lab

# A host has only the system's Python, in the same version as the tests.
PYTHON = "/usr/local/bin/cockpit-python"


def install_python(lab: Lab, names: Iterable[str]) -> None:
    """Write PYTHON on hosts: the system's Python with this cockpit and its dependencies."""
    paths = f"{REPOSITORY}:{sysconfig.get_path('purelib')}"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    script = shlex.quote(f'#!/bin/sh\nPYTHONPATH={paths} exec /usr/bin/python{version} "$@"\n')
    for name in names:
        lab.hosts[name].run(f"printf %s {script} >{PYTHON} && chmod 755 {PYTHON}")

"""Modules that are imported only when needed."""

import subprocess
import sys


def test_asyncssh_is_imported_only_for_ssh_hosts() -> None:
    code = "import sys, cockpit.hosts.feed; sys.exit('asyncssh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0

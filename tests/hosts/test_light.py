"""What watching this machine alone does not load."""

import subprocess
import sys


def test_asyncssh_is_loaded_only_for_hosts_with_ssh() -> None:
    code = "import sys, cockpit.hosts.feed; sys.exit('asyncssh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0

"""Fixtures shared with the tests of SSH hosts."""

from tests.hosts.conftest import isolated_home, ssh_client, sshd

__all__ = ["isolated_home", "ssh_client", "sshd"]

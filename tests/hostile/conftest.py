"""Fixtures shared with the tests of SSH hosts."""

from tests.hosts.conftest import isolated_home, sshd

__all__ = ["isolated_home", "sshd"]

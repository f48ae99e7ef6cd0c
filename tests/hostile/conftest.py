"""What the tests of SSH hosts share."""

from tests.hosts.conftest import own_home, sshd

__all__ = ["own_home", "sshd"]

"""The lab as fixtures. `lab` and `whole_lab` start once per test process, beside a lab brought up by hand."""

from collections.abc import Iterator

import pytest

from tests.lab.hosts import NAMES
from tests.lab.lab import Host, Lab


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """A running lab with web1 only: `lab.web1.url`, `lab.web1.run("cmd")`, `lab.ssh_config`."""
    with Lab.start() as running:
        yield running


@pytest.fixture(scope="session")
def whole_lab() -> Iterator[Lab]:
    """A lab with all hosts, separate from `lab`."""
    with Lab.start(*NAMES) as running:
        yield running


@pytest.fixture
def plain_web1(whole_lab: Lab) -> Iterator[Host]:
    """web1 of the whole lab, with its default modules only; restored after each test."""
    yield whole_lab.web1
    whole_lab.web1.restart("apache2")


@pytest.fixture
def fresh_web1(lab: Lab) -> Iterator[Host]:
    """web1 with the initial configuration of Apache; restored after each test."""
    yield lab.web1
    lab.web1.restart("apache2")

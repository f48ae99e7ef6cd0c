"""The lab as fixtures. `lab` and `whole_lab` start once per test process, beside a lab brought up by hand."""

import os
from collections.abc import Iterator

import pytest

from tests.lab.hosts import NAMES
from tests.lab.lab import Host, Lab
from tests.lab.requirements import missing


@pytest.fixture(scope="session")
def lab_allowed() -> None:
    """Skip the lab's tests with LAB=0, or if a requirement is missing; with CI=true a skip is a failure."""
    if os.environ.get("LAB") == "0":
        pytest.skip("left out by LAB=0")
    absent = missing()
    if absent:
        pytest.skip(f"the lab cannot run here; missing: {', '.join(absent)}")


@pytest.fixture(scope="session")
def lab(lab_allowed: None) -> Iterator[Lab]:
    """A running lab with web1 only: `lab.web1.url`, `lab.web1.run("cmd")`, `lab.ssh_config`."""
    with Lab.start() as running:
        yield running


@pytest.fixture(scope="session")
def whole_lab(lab_allowed: None) -> Iterator[Lab]:
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

"""The lab as test fixtures. `lab` and `whole_lab` come up once a test run, apart from one that a person brought up."""

import os
from collections.abc import Iterator

import pytest

from tests.lab.hosts import NAMES
from tests.lab.lab import Host, Lab
from tests.lab.requirements import missing


@pytest.fixture(scope="session")
def lab_allowed() -> None:
    """Skip the lab's tests with LAB=0, or if this machine lacks something; with CI=true a skip is a failure."""
    if os.environ.get("LAB") == "0":
        pytest.skip("left out by LAB=0")
    lacking = missing()
    if lacking:
        pytest.skip(f"the lab cannot run here; missing: {', '.join(lacking)}")


@pytest.fixture(scope="session")
def lab(lab_allowed: None) -> Iterator[Lab]:
    """A running lab of web1 alone: `lab.web1.url`, `lab.web1.run("cmd")`, `lab.ssh_config`."""
    with Lab.start() as running:
        yield running


@pytest.fixture(scope="session")
def whole_lab(lab_allowed: None) -> Iterator[Lab]:
    """A lab with every host. It is another than `lab`, whose web1 knows nothing of it."""
    with Lab.start(*NAMES) as running:
        yield running


@pytest.fixture
def plain_web1(whole_lab: Lab) -> Iterator[Host]:
    """web1 of the whole lab with its own modules and none of those at hand: after the test, and so before it too."""
    yield whole_lab.web1
    whole_lab.web1.restart("apache2")


@pytest.fixture
def fresh_web1(lab: Lab) -> Iterator[Host]:
    """web1 with Apache as it was when the lab came up: after the test, and so before it too."""
    yield lab.web1
    lab.web1.restart("apache2")

"""A load is checked alike, wherever it comes from; the error names the key or the flag."""

import pytest
from msgspec.structs import replace

from cockpit.cli.typed_load import plan_with
from cockpit.load import limits
from cockpit.model.errors import ProfileError, UsageError
from cockpit.model.load.checks import Invalid, check_plan
from cockpit.model.load.options import LOAD_OPTIONS, LONGEST
from cockpit.model.load.plan import LoadPlan, Stage
from cockpit.profiles.reader import parse_profile

URL = "http://127.0.0.1:9/"
PLAN = LoadPlan(url=URL, duration=1.0)


@pytest.mark.parametrize(
    ("key", "value", "flag", "problem"),
    [
        ("requests_per_connection", "0", "", "found 0; allowed: a whole number >= 1"),
        ("timeout", f"{LONGEST + 1}", "--timeout", f"found {LONGEST + 1}; allowed: "),
        ("workers", "5", "-w", "found 5; allowed: at most the concurrency, 1"),
        ("connections_per_user", "2", "--connections-per-user", "requires cookies"),
        ("method", "'get'", "-m", "found 'get'; allowed: a word in capitals"),
    ],
)
def test_profile_flag_and_generator_refuse_alike(key: str, value: str, flag: str, problem: str) -> None:
    with pytest.raises(ProfileError) as in_profile:
        parse_profile(f'[target]\nurl = "{URL}"\n[load]\n{key} = {value}\n', "x", "x.toml")
    assert f"load.{key}: {problem}" in str(in_profile.value)
    text = value.strip("'")
    plan = replace(PLAN, **{key: text if "'" in value else float(value) if "." in value else int(value)})
    for check in (check_plan, limits.check):
        with pytest.raises(Invalid) as invalid:
            check(plan)
        assert invalid.value.key == f"load.{key}" and invalid.value.problem.startswith(problem)
    if flag:
        with pytest.raises(UsageError) as of_flag:
            plan_with(PLAN, [flag, text])
        assert of_flag.value.subject == flag and of_flag.value.problem.startswith(problem)


def test_defaults_are_valid_and_infinite_values_are_refused() -> None:
    for changed in ({"rate": float("inf")}, {"rate": float("nan")}, {"stages": (Stage(duration=1.0, rate=1e999),)}):
        with pytest.raises(Invalid, match=r"load\.(stages\.)?rate: "):
            check_plan(replace(PLAN, **({"duration": None} | changed)))
    assert set(LOAD_OPTIONS) <= set(LoadPlan.__struct_fields__)
    check_plan(PLAN)

"""The [study] of a profile: in full, in short, as a grid; and what is wrong in it in one line."""

from pathlib import Path

import pytest

from cockpit.model.errors import ProfileError
from cockpit.model.study import Arm, Pass, Settle
from cockpit.profiles.profile import Profile
from cockpit.profiles.reader import parse_profile, read_profile

BASE = """
[target]
url = "http://web1/"
[load]
requests = 100
[[host]]
name = "web1"
[[knob]]
name = "K"
host = "web1"
file = "/f"
directive = "K"
test = "t"
reload = "r"
min = 1
max = 9
[[action]]
name = "empty"
host = "web1"
command = "x"
"""
ARMS = (
    '[[study.arm]]\nname = "a"\nset = { K = "1" }\n[[study.arm]]\nname = "b"\nurl = "http://web2"\nbefore = ["empty"]\n'
)
SHIPPED = sorted(Path("profiles").glob("*.toml"))


def parsed(study: str) -> Profile:
    return parse_profile(BASE + study, "x", "x.toml")


def test_no_study() -> None:
    profile = parse_profile(BASE, "x", "x")
    assert profile.study is None and profile.short_study is None


def test_a_whole_one() -> None:
    study = parsed(
        '[study]\nrepeats = 2\norder = "blocks"\nrungs = [1, 8]\nsettle = { runs = 2, within = 0.1 }\n'
        'passes = [{ name = "cold", before = ["empty"] }, { name = "warm" }]\nafter = ["empty"]\n'
        'watch = ["web1.cpu.idle", "p99.9"]\ntakes = "5s"\n' + ARMS
    ).study
    assert study is not None
    assert study.arms == (Arm(name="a", set=(("K", "1"),)), Arm(name="b", url="http://web2/", before=("empty",)))
    assert study.passes == (Pass(name="cold", before=("empty",)), Pass(name="warm"))
    assert study.settle == Settle(runs=2, within=0.1, at_most=10)
    assert (study.rungs, study.repeats, study.order, study.takes) == ((1.0, 8.0), 2, "blocks", 5.0)
    assert (study.compare, study.knobs, study.form) == ((("a", "b"),), ("K",), "full")


def test_the_short_form() -> None:
    profile = parsed(
        "[study]\nrepeats = 5\nsettle = { runs = 3 }\n"
        + ARMS
        + '[study.short]\nduration = "4s"\nrepeats = 2\nruns = 1\narms = ["b"]\n'
    )
    full, short = profile.study, profile.short_study
    assert full is not None and short is not None
    assert (full.plan.requests, full.plan.duration, full.repeats, len(full.arms)) == (100, None, 5, 2)
    assert (short.plan.requests, short.plan.duration, short.repeats, short.form) == (None, 4.0, 2, "short")
    assert (short.settle, short.runs, [arm.name for arm in short.arms], short.compare) == (None, 1, ["b"], ())


def test_a_grid() -> None:
    profile = parse_profile(
        (
            BASE
            + '[[study.factor]]\nknob = "K"\nvalues = ["1", "2"]\n[[study.factor]]\nknob = "L"\nvalues = ["8", "9"]\n'
        ).replace(
            "[[action]]",
            '[[knob]]\nname = "L"\nhost = "web1"\nfile = "/f"\ndirective = "L"\ntest = "t"\nreload = "r"\n[[action]]',
        ),
        "x",
        "x",
    )
    assert profile.study is not None
    assert [arm.name for arm in profile.study.arms] == ["K 1, L 8", "K 1, L 9", "K 2, L 8", "K 2, L 9"]


@pytest.mark.parametrize(
    ("study", "said"),
    [
        ("[study]\nrepeat = 2", "study: unknown key 'repeat'; did you mean repeats?"),
        ('[study]\norder = "random"', "study.order: found 'random'; allowed: alternate, blocks, shuffle"),
        ("[study]\nrepeats = 0", "study.repeats: found 0; allowed: a whole number >= 1"),
        ("[study]\nruns = 2\nsettle = {}", "study.settle: found beside runs; allowed: one of the two"),
        ("[study]\nsettle = { runs = 5, at_most = 3 }", "study.settle.at_most: found 3; allowed: at least runs, 5"),
        (
            '[[study.arm]]\nname = "a"\nset = { M = "1" }',
            "study.arm a.set: found 'M'; allowed: knobs of this file (K)",
        ),
        ('[[study.arm]]\nname = "a"\nset = { K = "12" }', "study.arm a.set: K = '12' is out of range; allowed: 1 to 9"),
        ('[[study.arm]]\nname = "a"\nurl = "web2"', "study.arm a.url: found 'web2'; allowed: http://host[:port]/path"),
        ('[[study.arm]]\nname = "a"\n[[study.arm]]\nname = "a"', "study.arm.name: found 'a' twice"),
        ('[[study.arm]]\nname = "a"\nbefore = ["x"]', "found 'x'; allowed: actions of this file (empty)"),
        ('[study]\nafter = ["x"]', "study.after: found 'x'; allowed: actions of this file (empty)"),
        ('[study]\ncompare = [["a", "z"]]\n' + ARMS, "study.compare: found 'z'; allowed: arms of this file (a, b)"),
        ('[study]\nwatch = ["web9.cpu.idle"]', "study.watch: found 'web9.cpu.idle'; allowed: figures as thresholds"),
        ('[study]\nwatch = ["speed"]', "study.watch: found 'speed'"),
        ('[[study.look]]\nname = "l"\nhost = "h"\ncommand = "c"', "study.look l.host: found 'h'; allowed: hosts of"),
        ("[study]\nrungs = [1.5]", "study.rungs: found a fraction; allowed: whole connections"),
        ("[study]\nrungs = [1, 200]", "study.rungs: found 200; allowed: at most the requests, 100"),
        (ARMS + '[study.short]\narms = ["c"]', "study.short.arms: found 'c'; allowed: a, b"),
        (ARMS + '[[study.factor]]\nknob = "K"\nvalues = ["1"]', "study.factor: found beside [[study.arm]] blocks"),
    ],
)
def test_bad_studies(study: str, said: str) -> None:
    with pytest.raises(ProfileError) as caught:
        parsed(study)
    assert str(caught.value).startswith("x.toml: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_what_ships_reads_in_both_forms(path: Path) -> None:
    profile = read_profile(path)
    assert profile.study is not None and profile.short_study is not None
    assert profile.short_study.form == "short"
    assert len(profile.question.splitlines()) == 2


def test_a_value_that_is_only_written_needs_its_action_before_each_arm() -> None:
    base = BASE.replace('directive = "K"\ntest = "t"\nreload = "r"', 'kind = "keyvalue"\nkey = "K"\naction = "empty"')
    arms = ARMS.replace('url = "http://web2"\n', 'set = { K = "2" }\n')
    with pytest.raises(ProfileError, match=r"study\.arm a\.set: K is only written, not active; allowed: a knob with"):
        parse_profile(base + "[study]\n" + arms, "x", "x.toml")
    whole = arms.replace('set = { K = "1" }', 'set = { K = "1" }\nbefore = ["empty"]')
    assert parse_profile(base + "[study]\n" + whole, "x", "x.toml").study

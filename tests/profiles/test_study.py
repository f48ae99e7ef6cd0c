"""The [study] of a profile: in full, in short, as a grid; and what is wrong in it in one line."""

from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from cockpit.model.errors import ProfileError
from cockpit.model.study import CONTROL, Pass, Variant, variant_plan
from cockpit.profiles.profile import Profile
from cockpit.profiles.reader import parse_profile, read_profile
from tests.data import data_of
from tests.lab.hosts import NAMES

DATA = data_of(__file__)

BASE = DATA["base"]
VARIANTS = DATA["variants"]
SHIPPED = sorted(Path("profiles").glob("*.toml"))
REQUIREMENTS = Path("tests/lab/packages").read_text().splitlines()


def parsed(study: str) -> Profile:
    return parse_profile(BASE + study, "x", "x.toml")


def test_load_ends_and_control_repeats_the_first_variant() -> None:
    profile = parse_profile(BASE, "x", "x")
    assert profile.study is None and profile.short_study is None
    profile = parsed('[study]\nduration = "20s"\nconcurrency = 3\n' + VARIANTS + "[study.short]\nrequests = 50\n")
    assert (profile.plan.requests, profile.plan.duration, profile.plan.concurrency) == (100, None, 1)
    assert profile.study is not None and profile.short_study is not None
    for study, ends in ((profile.study, (None, 20.0)), (profile.short_study, (50, None))):
        assert ((study.plan.requests, study.plan.duration), study.plan.concurrency) == (ends, 3)
    study = parsed("[study]\n" + VARIANTS).study
    assert study is not None and study.control is study.variants[1]
    assert study.control == replace(study.variants[0], name=CONTROL, control=True)
    alone = parsed("[study]\nrounds = 2").study
    assert alone is not None and alone.control is None, "nothing is compared"


def test_a_whole_one() -> None:
    study = parsed(
        "[study]\nrounds = 2\nlevels = [1, 8]\nseed = 7\nruns = 2\ndiscard = 1\n"
        'passes = [{ name = "cold", before = ["empty"] }, { name = "warm" }]\nafter = ["empty"]\n'
        'watch = ["web1.cpu.idle", "p99.9"]\nmetrics = ["web1.cpu.per_request", "rate"]\nrun_time = "5s"\n'
        'setup_warmup = "30s"\n' + VARIANTS
    ).study
    first, _, other = study.variants
    assert first == Variant(name="a", set=(("K", "1"),))
    assert other == Variant(name="b", url="http://web2/", before=("empty",))
    assert study.passes == (Pass(name="cold", before=("empty",)), Pass(name="warm"))
    assert (study.runs, study.discard, study.seed) == (2, 1, 7)
    assert (study.levels, study.rounds, study.run_time, study.setup_warmup) == ((1.0, 8.0), 2, 5.0, 30.0)
    assert study.metrics == ("web1.cpu.per_request", "rate")
    assert (study.compare, study.knobs, study.form) == ((("a", "b"),), ("K",), "full")
    assert study.comparisons == 4, "two levels in two passes; the A/A control is not one of them"


def test_the_short_form() -> None:
    profile = parsed(
        '[study]\nrounds = 5\nruns = 3\nmargin = "5%"\npasses = [{ name = "cold" }, { name = "warm" }]\n'
        + VARIANTS
        + '[study.short]\nduration = "4s"\nrounds = 2\nruns = 1\nvariants = ["a", "b"]\nmargin = "20 %"\n'
        + 'passes = ["warm"]\nwarmup = "1s"\nmetrics = ["rate"]\ncompare = [["b", "a"]]\n'
    )
    full, short = profile.study, profile.short_study
    assert (full.plan.requests, full.plan.duration, full.rounds, len(full.variants)) == (100, None, 5, 3)
    assert (short.plan.requests, short.plan.duration, short.rounds, short.form) == (None, 4.0, 2, "short")
    assert (short.runs, short.compare) == (1, (("b", "a"),))
    assert [variant.name for variant in short.variants] == ["a", CONTROL, "b"]
    assert (full.metrics, short.metrics) == ((), ("rate",))
    assert (full.margin, short.margin) == (0.05, 0.2)
    assert (short.plan.warmup, short.setup_warmup) == (1.0, 0.0)
    assert ([one.name for one in full.passes], [one.name for one in short.passes]) == (["cold", "warm"], ["warm"])


def test_a_variant_may_vary_the_load() -> None:
    study = parsed(
        '[study]\n[[study.variant]]\nname = "a"\n'
        '[[study.variant]]\nname = "b"\nconcurrency = 8\nhttp = "2"\nkeepalive = false\nurls = "/{1..3}.jpg"\n'
    ).study
    plan = variant_plan(study, study.variants[-1], None)
    assert (plan.concurrency, plan.keepalive, plan.http) == (8, False, "2")
    assert plan.paths is not None and plan.paths.pattern == "/{1..3}.jpg"
    assert variant_plan(study, study.variants[0], None) == study.plan
    opened = BASE.replace("requests = 100", 'rate = 50\nduration = "5s"')
    opened += '[[request]]\nname = "one"\npath = "/1"\n[[request]]\nname = "two"\npath = "/2"\n'
    variants = '[[study.variant]]\nname = "a"\n[[study.variant]]\nname = "b"\nmix = ["two"]\n'
    variants += "rate = 80\nburst = 9\nmax_in_flight = 6\n"
    study = parse_profile(opened + "[study]\n" + variants, "x", "x.toml").study
    plan = variant_plan(study, study.variants[-1], None)
    assert (plan.rate, plan.burst, plan.max_in_flight) == (80, 9, 6) and [request.url for request in plan.mix] == [
        "http://web1/2"
    ]


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
    names = [variant.name for variant in profile.study.variants]
    assert names == ["K 1, L 8", CONTROL, "K 1, L 9", "K 2, L 8", "K 2, L 9"]


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_what_ships_reads_in_both_forms(path: Path) -> None:
    profile = read_profile(path)
    # Those without a study are for the screen.
    on_screen = (
        *("cache-type", "real-visitors", "php-fpm", "haproxy", "lighttpd", "gunicorn", "varnish", "caddy", "uvicorn"),
        *("node", "mariadb", "tomcat", "systemd", "kernel"),
    )
    assert (profile.study is None) == path.stem.startswith(on_screen)
    assert profile.study is None or (profile.short_study is not None and profile.short_study.form == "short")
    assert len(profile.question.splitlines()) == 2


@pytest.mark.parametrize(
    "path", [path for path in SHIPPED if "[study]" in path.read_text()], ids=lambda path: path.stem
)
def test_shipped_studies_run_on_hosts_and_programs_of_the_lab(path: Path) -> None:
    profile = read_profile(path)
    commands = [row.split()[0].rpartition("/")[2] for row in REQUIREMENTS if row.strip() and not row.startswith("#")]
    for study in (profile.study, profile.short_study):
        assert study is not None and study.control is not None
        hosts = {urlsplit(variant_plan(study, variant, None).url).hostname for variant in study.variants}
        assert hosts | {host.name for host in profile.hosts} <= set(NAMES)
    watched = {name for host in profile.hosts for name in host.processes}
    assert all(any(fnmatch(command, name) for command in commands) for name in watched)


def test_a_value_that_is_only_written_needs_its_action_before_each_variant_and_at_the_end() -> None:
    base = BASE.replace('directive = "K"\ntest = "t"\nreload = "r"', 'kind = "keyvalue"\nkey = "K"\naction = "empty"')
    variants = VARIANTS.replace('url = "http://web2"\n', 'set = { K = "2" }\n')
    with pytest.raises(ProfileError, match=r"study\.variant a\.set: K is written but not activated; use a knob with"):
        parse_profile(base + "[study]\n" + variants, "x", "x.toml")
    whole = variants.replace('set = { K = "1" }', 'set = { K = "1" }\nbefore = ["empty"]')
    for after in ("", 'after = ["empty"]\n'):
        study = parse_profile(base + "[study]\n" + after + whole, "x", "x.toml").study
        assert study and study.after == ("empty",), "it also activates the original value"

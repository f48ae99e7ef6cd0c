"""Knobs and actions of a profile: what each kind needs, and what is said where it is not there."""

from cockpit.model.knobs import Knob
from cockpit.profiles.reader import parse_profile

HEAD = '[target]\nurl = "http://web1/"\n[[host]]\nname = "web1"\nprocesses = ["apache2"]\nsudo = true\n'
KNOB = '[[knob]]\nname = "K"\nhost = "web1"\n'
DIRECTIVE = KNOB + 'file = "/f"\ndirective = "D"\ntest = "t"\nreload = "r"\n'
OPTIONS = '[[knob.option]]\nname = "a"\nset = "s"\nwhen = "w"\n[[knob.option]]\nname = "b"\nset = "s"\n'


def knob(text: str) -> Knob:
    return parse_profile(HEAD + text, "x", "x.toml").knobs[0]


def test_every_kind() -> None:
    assert knob(DIRECTIVE).workers == "apache2"
    assert knob(DIRECTIVE + 'workers = ""').workers == ""
    assert knob(DIRECTIVE + 'kind = "nginx"\nsection = "http {"').workers == ""
    several = HEAD.replace('"apache2"', '"php-fpm*", "nginx"') + DIRECTIVE + 'kind = "nginx"'
    assert parse_profile(several, "x", "x.toml").knobs[0].workers == "nginx"
    assert knob(DIRECTIVE + 'kind = "squid"').effective_cost == "graceful"
    assert (
        knob(KNOB + 'kind = "keyvalue"\nfile = "/f"\nkey = "K"\nreload = "service x restart"').effective_cost
        == "restart"
    )
    assert knob(KNOB + 'kind = "sysctl"\nkey = "vm.swappiness"\nmin = 0\nmax = 100').allowed == "0 to 100"
    assert knob(KNOB + 'kind = "mount"\nmount = "/srv"').choices == ("strictatime", "relatime", "noatime")
    assert knob(KNOB + 'kind = "command"\nget = "g"\nset = "s"\ncost = "restart"').effective_cost == "restart"
    choice = knob(KNOB + 'kind = "choice"\n' + OPTIONS + 'when = "w"\n')
    assert (choice.choices, choice.effective_cost) == (("a", "b"), "restart")


def test_actions() -> None:
    action = '[[action]]\nname = "again"\nhost = "web1"\ncommand = "service x restart"\ntimes = 20\n'
    (found,) = parse_profile(HEAD + action, "x", "x.toml").actions
    assert (found.name, found.host, found.times) == ("again", "web1", 20)


ACTION = 'action = "again"\n[[action]]\nname = "again"\nhost = "web1"\ncommand = "x"\n'


def test_a_value_without_a_reload_is_only_written() -> None:
    found = knob(KNOB + 'kind = "keyvalue"\nfile = "/f"\nkey = "K"\n' + ACTION)
    assert (found.written_only, found.effective_cost, found.activation) == (True, "written", "run action again")
    found = knob(KNOB + 'kind = "keyvalue"\nfile = "/f"\nkey = "K"\n')
    assert (found.effective_cost, found.activation) == ("written", "restart or reload its server")
    assert not knob(KNOB + 'kind = "keyvalue"\nfile = "/f"\nkey = "K"\nreload = "r"\n').written_only
    assert not knob(KNOB + 'kind = "sysctl"\nfile = "/f"\nkey = "vm.swappiness"\n').written_only


def test_a_setting_that_is_read_at_the_start_needs_a_restart() -> None:
    limit = DIRECTIVE.replace('"D"', '"ServerLimit"')
    found = knob(limit)
    assert (found.written_only, found.effective_cost, found.activation) == (
        True,
        "written",
        "needs a restart: restart its server",
    )
    assert knob(limit + ACTION).activation == "needs a restart: run action again"
    assert knob(limit.replace('"r"', '"systemctl restart apache2"')).effective_cost == "restart"
    assert not knob(limit + 'cost = "restart"\n').written_only
    assert not knob(DIRECTIVE.replace('"D"', '"worker_processes"') + 'kind = "nginx"\n').needs_restart
    assert knob(DIRECTIVE.replace('"D"', '"workers"') + 'kind = "squid"\n').needs_restart

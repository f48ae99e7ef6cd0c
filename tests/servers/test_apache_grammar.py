"""Reading and changing a directive in an Apache configuration."""

from __future__ import annotations

import pytest

from cockpit.servers.apache.editor import ApacheGrammar, shown
from cockpit.servers.editing import ConfigError, ConfigValue

APACHE = ApacheGrammar()

DIRECTIVE = "MaxSpareServers"
PREFORK = "IfModule mpm_prefork_module"

# case, text, section, current value, text with value 30
CHANGED = [
    ("top level", b"MaxSpareServers 10\n", None, "10", b"MaxSpareServers 30\n"),
    ("spacing", b"\t MaxSpareServers \t  10 \t\nX 1\n", None, "10", b"\t MaxSpareServers \t  30 \t\nX 1\n"),
    ("no newline at the end", b"A b\nMaxSpareServers 10", None, "10", b"A b\nMaxSpareServers 30"),
    ("CRLF", b"A b\r\nMaxSpareServers 10\r\nC d\r\n", None, "10", b"A b\r\nMaxSpareServers 30\r\nC d\r\n"),
    ("CRLF with a space", b"MaxSpareServers 10 \r\n", None, "10", b"MaxSpareServers 30 \r\n"),
    ("case-insensitive name", b"MAXspareSERVERS 10\n", None, "10", b"MAXspareSERVERS 30\n"),
    ("comments", b"#MaxSpareServers 5\n # MaxSpareServers 6\nMaxSpareServers 10\n", None, "10",
     b"#MaxSpareServers 5\n # MaxSpareServers 6\nMaxSpareServers 30\n"),
    ("continued comment", b"# x \\\nMaxSpareServers 5\nMaxSpareServers 10\n#\\\n", None, "10",
     b"# x \\\nMaxSpareServers 5\nMaxSpareServers 30\n#\\\n"),
    ("continued before the value", b"MaxSpareServers \\\n  10\n", None, "10", b"MaxSpareServers \\\n  30\n"),
    ("continued after the value", b"MaxSpareServers 10\\\n\nA b\n", None, "10", b"MaxSpareServers 30\\\n\nA b\n"),
    ("continued inside the name", b"MaxSpare\\\r\nServers 10\r\n", None, "10", b"MaxSpare\\\r\nServers 30\r\n"),
    ("continued inside the value", b"MaxSpareServers 1\\\n0 # \n", None, "10 #", b"MaxSpareServers 30 \n"),
    ("backslash before the next line", b"MaxSpareServers 10 \\\\\n\nA b\n", None, "10 A b",
     b"MaxSpareServers 30\n"),
    ("double quotes", b'MaxSpareServers "10"\n', None, "10", b'MaxSpareServers "30"\n'),
    ("single quotes", b"MaxSpareServers '10' \n", None, "10", b"MaxSpareServers '30' \n"),
    ("required quotes", b'MaxSpareServers "1 0"\n', None, '"1 0"', b"MaxSpareServers 30\n"),
    ("an open quote", b'MaxSpareServers "10\nA b\n', None, '"10', b"MaxSpareServers 30\nA b\n"),
    ("a quoted name", b'"MaxSpareServers" 10\n', None, "10", b'"MaxSpareServers" 30\n'),
    ("several words", b"MaxSpareServers  a  b \n", None, "a  b", b"MaxSpareServers  30 \n"),
    ("no UTF-8", b"# \xff\xfe\nMaxSpareServers \xe9\n", None, "\\xe9", b"# \xff\xfe\nMaxSpareServers 30\n"),
    ("longer name does not match", b"MaxSpareServersX 5\nMaxSpareServers 10\n", None, "10",
     b"MaxSpareServersX 5\nMaxSpareServers 30\n"),
    ("last directive wins", b"MaxSpareServers 5\nMaxSpareServers 10\n", None, "10",
     b"MaxSpareServers 5\nMaxSpareServers 30\n"),
    ("top level beside a section", b"<Directory /a>\nMaxSpareServers 5\n</Directory>\nMaxSpareServers 10\n", None,
     "10", b"<Directory /a>\nMaxSpareServers 5\n</Directory>\nMaxSpareServers 30\n"),
    ("in the section", b"MaxSpareServers 5\n<IfModule mpm_prefork_module>\n  MaxSpareServers 10\n</IfModule>\n",
     PREFORK, "10", b"MaxSpareServers 5\n<IfModule mpm_prefork_module>\n  MaxSpareServers 30\n</IfModule>\n"),
    ("case-insensitive section name", b"<IFMODULE\tmpm_prefork_module >\nMaxSpareServers 10\n</ifModule>\n",
     PREFORK, "10", b"<IFMODULE\tmpm_prefork_module >\nMaxSpareServers 30\n</ifModule>\n"),
    ("a nested section", b"<IfModule a>\n<IfModule mpm_prefork_module>\nMaxSpareServers 10\n</IfModule>\n"
     b"MaxSpareServers 5\n</IfModule>\n", PREFORK, "10",
     b"<IfModule a>\n<IfModule mpm_prefork_module>\nMaxSpareServers 30\n</IfModule>\nMaxSpareServers 5\n</IfModule>\n"),
    ("inner section", b"<IfModule mpm_prefork_module>\nMaxSpareServers 10\n<Directory /a>\nMaxSpareServers 5\n"
     b"</Directory>\n</IfModule>", PREFORK, "10",
     b"<IfModule mpm_prefork_module>\nMaxSpareServers 30\n<Directory /a>\nMaxSpareServers 5\n"
     b"</Directory>\n</IfModule>"),
    ("last of two sections", b"<IfModule mpm_prefork_module>\nMaxSpareServers 5\n</IfModule>\n"
     b"<IfModule mpm_prefork_module>\nMaxSpareServers 10\n</IfModule>\n", PREFORK, "10",
     b"<IfModule mpm_prefork_module>\nMaxSpareServers 5\n</IfModule>\n"
     b"<IfModule mpm_prefork_module>\nMaxSpareServers 30\n</IfModule>\n"),
    ("an argument in quotes", b'<Directory "/var/my www">\nMaxSpareServers 10\n</Directory>\n',
     'Directory "/var/my www"', "10", b'<Directory "/var/my www">\nMaxSpareServers 30\n</Directory>\n'),
    ("an argument with a bracket", b"<If \"%{HTTP_HOST} -strmatch '>'\">\nMaxSpareServers 10\n</If>\n",
     "If \"%{HTTP_HOST} -strmatch '>'\"", "10", b"<If \"%{HTTP_HOST} -strmatch '>'\">\nMaxSpareServers 30\n</If>\n"),
]  # fmt: skip

# case, text, section, text with 30 added
ADDED = [
    ("empty text", b"", None, b"MaxSpareServers 30\n"),
    ("top level", b"A b\n", None, b"A b\nMaxSpareServers 30\n"),
    ("top level without a newline", b"A b", None, b"A b\nMaxSpareServers 30"),
    ("CRLF", b"A b\r\n", None, b"A b\r\nMaxSpareServers 30\r\n"),
    ("indentation of neighbours", b"<IfModule mpm_prefork_module>\n\tA b\n# c\n</IfModule>\n", PREFORK,
     b"<IfModule mpm_prefork_module>\n\tA b\n# c\n\tMaxSpareServers 30\n</IfModule>\n"),
    ("an empty section", b"  <IfModule mpm_prefork_module>\r\n  </IfModule>\r\n", PREFORK,
     b"  <IfModule mpm_prefork_module>\r\n      MaxSpareServers 30\r\n  </IfModule>\r\n"),
    ("continued comment", b"<IfModule mpm_prefork_module>\n# x \\\n</IfModule>\n</IfModule>", PREFORK,
     b"<IfModule mpm_prefork_module>\n# x \\\n</IfModule>\n    MaxSpareServers 30\n</IfModule>"),
]  # fmt: skip

REFUSED = [
    ("no such section", b"A b\n", PREFORK, "no section <IfModule mpm_prefork_module>"),
    ("another section", b"<IfModule prefork.c>\nMaxSpareServers 1\n</IfModule>\n", PREFORK,
     "no section <IfModule mpm_prefork_module>; MaxSpareServers is in <IfModule prefork.c>, line 2: "
     'set section = "IfModule prefork.c" in the knob'),
    ("argument is case-sensitive", b"<IfModule MPM_prefork_module>\n</IfModule>\n", PREFORK, "no section"),
    ("no section in the file", b"\nMaxSpareServers 1\n", PREFORK,
     "is at the top level, line 2: remove section from the knob"),
    ("several sections, knob without section",
     b"<IfModule a>\nMaxSpareServers 1\n</IfModule>\n<IfModule b>\nMaxSpareServers 1\n</IfModule>\n", None,
     "MaxSpareServers is in several sections (lines 2 and 5); set section in the knob"),
    ("ambiguous virtual host", b"<VirtualHost *:80>\n</VirtualHost>\n<VirtualHost *:80>\n</VirtualHost>\n",
     "VirtualHost *:80", "2 sections <VirtualHost *:80>: cannot tell which; edit the file by hand"),
    ("never closed", b"A b\n<IfModule mpm_prefork_module>\nMaxSpareServers 1\n", PREFORK,
     "line 2: <IfModule mpm_prefork_module> is never closed"),
    ("mismatched end tag", b"<A b>\n</C>\n", None, "line 2: </C> closes no open section"),
    ("closed twice", b"<A b>\n</A>\n</A>\n", None, "line 3: </A> closes no open section"),
    ("NUL", b"MaxSpareServers 1\0\n", None, "not a configuration text: it contains a NUL byte"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "section", "value", "changed"), [c[1:] for c in CHANGED], ids=[c[0] for c in CHANGED])
def test_change_modifies_only_value(text: bytes, section: str | None, value: str, changed: bytes) -> None:
    found = APACHE.read(text, DIRECTIVE, section)
    assert found.value == value
    assert found.raw is not None
    new = APACHE.change(text, DIRECTIVE, APACHE.spell("30", like=found.raw), section)
    assert new == changed
    assert APACHE.read(new, DIRECTIVE, section).value == "30"
    assert APACHE.change(new, DIRECTIVE, found.raw, section) == text


@pytest.mark.parametrize(("text", "section", "added"), [a[1:] for a in ADDED], ids=[a[0] for a in ADDED])
def test_missing_directive_is_added_and_removed(text: bytes, section: str | None, added: bytes) -> None:
    assert APACHE.read(text, DIRECTIVE, section).value is None
    assert APACHE.change(text, DIRECTIVE, b"30", section) == added
    assert APACHE.read(added, DIRECTIVE, section).value == "30"
    assert APACHE.change(added, DIRECTIVE, None, section) == text


@pytest.mark.parametrize(("text", "section", "reason"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_ambiguous_or_invalid_text_is_refused(text: bytes, section: str | None, reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        APACHE.read(text, DIRECTIVE, section)
    assert reason in str(refused.value)
    with pytest.raises(ConfigError):
        APACHE.change(text, DIRECTIVE, b"30", section)


def test_read_returns_line_and_count() -> None:
    text = b"MaxSpareServers 5\n#\n<IfModule x>\nMaxSpareServers 7\n</IfModule>\nMaxSpareServers \\\n10\n"
    assert APACHE.read(text, DIRECTIVE) == ConfigValue("10", b"10", 6, 2)


def test_single_conditional_section_is_found_without_section() -> None:
    text = b"<IfModule mpm_prefork_module>\n\tMaxSpareServers\t10\n</IfModule>\n"
    assert APACHE.read(text, DIRECTIVE) == ConfigValue("10", b"10", 2, 1)
    assert APACHE.change(text, DIRECTIVE, b"30") == text.replace(b"10", b"30")
    scoped = b"<VirtualHost *:80>\nMaxSpareServers 10\n</VirtualHost>\n"
    assert APACHE.read(scoped, DIRECTIVE).value is None


def test_nothing_is_added_after_trailing_backslash() -> None:
    for text in (b"A b \\", b"A b \\\n"):
        with pytest.raises(ConfigError, match="ends in a backslash"):
            APACHE.change(text, DIRECTIVE, b"30")


def test_directive_without_arguments_is_not_changed() -> None:
    text = b"A b\nMaxSpareServers\n"
    assert APACHE.read(text, DIRECTIVE) == ConfigValue("", b"", 2, 1)
    with pytest.raises(ConfigError, match="line 2: MaxSpareServers has no value"):
        APACHE.change(text, DIRECTIVE, b"30")


def test_duplicate_directive_is_not_removed() -> None:
    with pytest.raises(ConfigError, match="2 times"):
        APACHE.change(b"MaxSpareServers 5\nMaxSpareServers 10\n", DIRECTIVE, None)


@pytest.mark.parametrize(
    ("value", "like", "raw"),
    [
        ("30", b"10", b"30"),
        ("30", b"'10'", b"'30'"),
        ("30", b'"1 0"', b"30"),
        ('"30"', b"10", b"30"),
        ('"a b"', b"10", b'"a b"'),
        ('"a b"', b'"10"', b'"a b"'),
        ("$(reboot)", b"10", b"$(reboot)"),
        ("`reboot`;", b"10", b"`reboot`;"),
        ("--help", b"10", b"--help"),
        ("it's", b"10", b"it's"),
        ("é", b"10", "é".encode()),
        ("index.html index.php", b"a", b"index.html index.php"),
        ('"a \\" b"', None, b'"a \\" b"'),
    ],
)
def test_spelled_value_is_read_back(value: str, like: bytes | None, raw: bytes) -> None:
    assert APACHE.spell(value, like) == raw
    text = APACHE.change(b"Timeout 10\n", "Timeout", raw)
    assert APACHE.read(text, "Timeout").raw == raw
    assert APACHE.spell(shown(raw), raw) == raw


@pytest.mark.parametrize(
    "value",
    ["", " ", " 30", "30 ", "3\n0", "3\r0", "30\n</IfModule>", "3\x000", "3\t0", "\x1b[2J", "30\\", '"30', "'",
     "\ud800", "30\u2028", "\u202e03", "9" * 5000],
)  # fmt: skip
def test_unrepresentable_value_is_refused(value: str) -> None:
    with pytest.raises(ConfigError):
        APACHE.spell(value)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("Timeout", "5 10", "more than one word"),
        ("MaxSpareServers", "banana", "not a whole number"),
        ("maxspareservers", "12x", "not a whole number"),
        ("MaxSpareServers", "1.5", "not a whole number"),
    ],
)
def test_value_misread_by_apache_is_refused(name: str, value: str, reason: str) -> None:
    assert reason in APACHE.refusal(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DirectoryIndex", '"a b"'),
        ("MaxSpareServers", '"30"'),
        ("MaxSpareServers", "${SPARE}"),
        ("KeepAlive", "banana"),
    ],
)
def test_value_valid_for_apache_is_accepted(name: str, value: str) -> None:
    assert APACHE.refusal(name, value) == ""


MACRO = b"""\
<Macro VHost $name>
<VirtualHost *:80>
    Timeout 9
</VirtualHost>
<IfModule mpm_event_module>
    MaxRequestWorkers 9
</IfModule>
</Macro>
"""


def test_macro_definition_is_not_read() -> None:
    text = MACRO + b"<VirtualHost *:80>\n    Timeout 5\n</VirtualHost>\n"
    assert APACHE.read(text, "Timeout", "VirtualHost *:80").value == "5"
    assert APACHE.change(text, "Timeout", b"6", "VirtualHost *:80") == text.replace(b"Timeout 5", b"Timeout 6")
    for section in ("VirtualHost *:80", "IfModule mpm_event_module"):
        with pytest.raises(ConfigError, match="no section"):
            APACHE.read(MACRO, "Timeout", section)
    with pytest.raises(ConfigError, match=r"is in <Macro VHost \$name>, line 3: change it there by hand"):
        APACHE.read(MACRO, "Timeout", "VirtualHost *:80")
    assert APACHE.read(MACRO, "MaxRequestWorkers").value is None
    assert APACHE.read(b"<Macro M>\nTimeout 4\n</Macro>\n", "Timeout", "Macro M").value == "4"


def test_perl_section_has_no_directives() -> None:
    text = b"<Perl>\nTimeout 9\n<STDIN>\n</VirtualHost>\n</perl>\nTimeout 5\n"
    assert APACHE.read(text, "Timeout")[:1] == ("5",) and APACHE.read(text, "Timeout").times == 1
    assert APACHE.change(text, "Timeout", b"6") == text.replace(b"Timeout 5", b"Timeout 6")


def test_continuation_line_is_not_directive() -> None:
    text = b"ServerAdmin a \\\nTimeout 9\nTimeout \\\r\n  5\n# x \\\nTimeout 8\n"
    assert APACHE.read(text, "Timeout").value == "5" and APACHE.read(text, "Timeout").times == 1
    assert APACHE.change(text, "Timeout", b"6") == text.replace(b"  5\n", b"  6\n")

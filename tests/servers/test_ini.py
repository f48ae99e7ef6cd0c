"""Settings in ini files: PHP-FPM pools, php.ini, MariaDB option files."""

from __future__ import annotations

import pytest

from cockpit.servers import registry
from cockpit.servers.editing import ConfigError

PHP, MARIADB = registry.GRAMMARS["php-fpm"], registry.GRAMMARS["mariadb"]
POOLS = b"""\
; pools
[www]
user = www-data ; who
pm = dynamic
;pm.max_requests = 500
pm.max_children=5
php_admin_value[memory_limit] = "32M ; no comment" ; a comment

[api]
pm = static
pm.max_children = 2
"""
OPTIONS = b"""\
!includedir /etc/mysql/conf.d/
!include /etc/mysql/more.cnf
[client]
max_connections = 1
[mysqld]
skip-name-resolve
max-connections = 100 # enough
[mariadb]
max_connections=200
"""


def test_settings_are_read_per_pool() -> None:
    assert PHP.read(POOLS, "pm.max_children", "www").value == "5"
    assert PHP.read(POOLS, "pm.max_children", "api").value == "2"
    assert PHP.read(POOLS, "user").value == "www-data"
    assert PHP.read(POOLS, "php_admin_value[memory_limit]", "www").value == '"32M ; no comment"'
    assert PHP.read(POOLS, "pm.max_requests", "www").value is None


def test_change_modifies_only_value() -> None:
    changed = PHP.change(POOLS, "pm.max_children", b"50", "www")
    assert changed == POOLS.replace(b"pm.max_children=5", b"pm.max_children=50")
    assert PHP.change(changed, "pm.max_children", b"5", "www") == POOLS


def test_missing_setting_is_added_at_end_of_section() -> None:
    changed = PHP.change(POOLS, "pm.max_requests", b"500", "www")
    assert changed == POOLS.replace(b" ; a comment\n", b" ; a comment\npm.max_requests = 500\n")
    assert PHP.change(changed, "pm.max_requests", None, "www") == POOLS
    assert PHP.change(b"", "pm", b"static") == b"pm = static\n"


@pytest.mark.parametrize(
    ("text", "name", "section", "reason"),
    [
        (POOLS, "pm", None, r"pm is in \[www\] and \[api\]; set the section of the knob"),
        (POOLS, "pm", "shop", r"no section \[shop\]; its sections: \[www\], \[api\]"),
        (b"[HOST=a]\nopcache.enable = 0\n", "opcache.enable", None, "for some requests only; change it by hand"),
        (b"pm = a\0\n", "pm", None, "NUL byte"),
    ],
)
def test_ambiguous_setting_is_refused(text: bytes, name: str, section: str | None, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        PHP.change(text, name, b"1", section)


@pytest.mark.parametrize(
    ("value", "raw"), [("5", b"5"), ("10s", b"10s"), ("a;b", b'"a;b"'), ("a b", b"a b"), ('"a;b"', b'"a;b"')]
)
def test_values_are_quoted_if_needed(value: str, raw: bytes) -> None:
    assert PHP.spell(value) == raw


@pytest.mark.parametrize("value", ["", " 5", '"5', '5"6', "5\n6"])
def test_unrepresentable_value_is_refused(value: str) -> None:
    with pytest.raises(ConfigError):
        PHP.spell(value)


def test_server_groups_are_one_section_last_line_wins() -> None:
    found = MARIADB.read(OPTIONS, "max_connections", "mysqld")
    assert (found.value, found.line, found.times) == ("200", 9, 2)
    assert MARIADB.read(OPTIONS, "max_connections", "client").value == "1"
    assert MARIADB.change(OPTIONS, "max_connections", b"300", "mysqld") == OPTIONS.replace(b"=200", b"=300")
    assert MARIADB.read(OPTIONS.replace(b"[mariadb]", b"[mysql]"), "max_connections", "mysqld").value == "100"


def test_an_option_that_may_be_unknown_is_the_option() -> None:
    text = OPTIONS + b"loose-max_connections = 300\n"
    assert MARIADB.read(text, "max_connections", "mysqld").value == "300"
    assert MARIADB.change(text, "max_connections", b"400", "mysqld") == text.replace(b"300", b"400")


def test_version_specific_group_is_not_changed() -> None:
    with pytest.raises(ConfigError, match=r"max_connections is in \[mariadb-10\.11\], which only this version reads"):
        MARIADB.read(OPTIONS.replace(b"[mariadb]", b"[mariadb-10.11]"), "max_connections", "mysqld")


def test_includes_are_listed_with_lines() -> None:
    assert MARIADB.includes(OPTIONS, "mysqld") == [("/etc/mysql/conf.d/*.cnf", 1), ("/etc/mysql/more.cnf", 2)]
    assert PHP.includes(b"[global]\ninclude=/etc/php/8.2/fpm/pool.d/*.conf\n", "www") == [
        ("/etc/php/8.2/fpm/pool.d/*.conf", 2)
    ]

"""Settings of gunicorn.conf.py: assignments of constants at the top level of a Python file. Pure; the file is parsed,
never run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from typing import TypeGuard

from cockpit.servers.editing import ConfigError, ConfigText, Grammar, Location, Statement, encode_line

_LIMIT = 256 * 1024
_WORDS = {"true": b"True", "false": b"False", "none": b"None"}


class GunicornGrammar(Grammar):
    """A computed setting is shown as its expression and can be replaced; assignments inside another statement cannot be
    changed."""

    sections = False

    def locate(self, text: ConfigText, name: str, section: str | None) -> Location:
        if section is not None:
            raise ConfigError("a Python file has no sections")
        module = _module(text)
        statements = tuple(_statement(text, name, node) for node in _assignments(module, name))
        simple = {target for node in module.body for target in _targets(node)}
        bound = next((node for node in ast.walk(module) if _binds(node, name) and node not in simple), None)
        if bound is not None:
            raise ConfigError(f"{name} is assigned inside another statement; change it by hand", bound.lineno)
        return Location(statements, lambda: text.new_line(len(text), name.encode() + b" = "))

    def encode(self, value: str, like: bytes | None = None) -> bytes:
        raw = encode_line(value)
        if value.lower() in _WORDS:
            return _WORDS[value.lower()]
        if _is_number(value):
            return raw
        inner = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
        if "\\" in inner or '"' in inner:
            raise ConfigError("a value must not contain a quote or a backslash")
        return f'"{inner}"'.encode()


def _module(text: ConfigText) -> ast.Module:
    if len(text) > _LIMIT:
        raise ConfigError(f"the file is larger than {_LIMIT // 1024} KiB")
    if b"\r" in text.replace(b"\r\n", b""):
        raise ConfigError("a carriage return without a line feed ends a line; change the file by hand")
    try:
        # Decoded as UTF-8 despite any coding declaration, so that columns are bytes of the text. Warnings would be
        # printed on the screen.
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(text.decode())
    except SyntaxError as error:
        raise ConfigError("not a Python file: syntax error", error.lineno or 0) from None
    except (ValueError, RecursionError, MemoryError):
        raise ConfigError("not a Python file") from None


def _targets(node: ast.AST) -> list[ast.Name]:
    """Return the names that an assignment sets."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign | ast.AugAssign):
        targets = [node.target]
    return [part for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]


def _binds(node: ast.AST, name: str) -> TypeGuard[ast.expr | ast.stmt | ast.alias]:
    """Return whether the name gets or loses a value, also by a loop, an import or a definition."""
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.alias):
        return name in (node.asname or node.name.partition(".")[0], "*")
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name


def _assignments(module: ast.Module, name: str) -> Iterator[ast.Assign | ast.AnnAssign]:
    """Yield the assignments at the top level. Raises ConfigError for several targets, or if a value is missing."""
    for node in module.body:
        if name not in (target.id for target in _targets(node)):
            continue
        simple = isinstance(node, ast.AnnAssign) or (isinstance(node, ast.Assign) and len(node.targets) == 1)
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0] if simple else None  # type: ignore[attr-defined]
        if not isinstance(target, ast.Name) or not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            raise ConfigError(f"{name} is not set by a simple assignment; change it by hand", node.lineno)
        yield node


def _statement(text: ConfigText, name: str, node: ast.Assign | ast.AnnAssign) -> Statement:
    value = node.value
    assert value is not None
    assert value.end_lineno is not None and value.end_col_offset is not None
    start, end = _at(text, value.lineno, value.col_offset), _at(text, value.end_lineno, value.end_col_offset)
    first, last = _at(text, node.lineno, 0), text.line_end(end)
    rest = text[end:last].strip()
    alone = node.col_offset == 0 and (not rest or rest.startswith(b"#"))
    computed = not isinstance(value, ast.Constant) or not isinstance(value.value, str | int | float | None)
    shown = text[start:end].decode() if computed else str(value.value)  # type: ignore[attr-defined]
    if not shown.isprintable():
        raise ConfigError(f"{name} contains unprintable characters; change it by hand", node.lineno)
    return Statement(shown, (start, end), text.whole_lines(first, last) if alone else None, node.lineno)


def _at(text: ConfigText, line: int, column: int) -> int:
    """Return the position of a line (from 1) and a column in bytes."""
    at = 0
    for _ in range(line - 1):
        at = text.line_end(at)
    return at + column


def _is_number(value: str) -> bool:
    return value.isascii() and value.replace(".", "", 1).isdigit() and value[0] != "." and len(value) < 19

"""An animated SVG of a session: frames of the screen, shown one after the other without scripts.

Parts that frames share are stored once: eight frames are about as large as two pictures. Viewers without animation show
the last frame.
"""

import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_STYLE = re.compile(r"\.(terminal-\d+-r\d+) \{ (.*?) \}")
_RECTANGLE = re.compile(r'<rect fill="(#\w+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"[^>]*/>')
_TEXT = re.compile(r'<text [^>]*?class="(\S+)" x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)"[^>]*>([^<]*)</text>')
_PLACE = re.compile(r'<g transform="translate\((\d+), (\d+)\)" clip-path')
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_SCREEN = re.compile(r'clip-terminal">\s*<rect x="0" y="0" width="[\d.]+" height="([\d.]+)"')
_BACKGROUND = re.compile(r'<rect fill="(#\w+)" stroke')
_CSS = "rect{shape-rendering:crispEdges}text{font:20px Fira Code,monospace;white-space:pre}"
# Margin around the screen, and height of the caption below it, in SVG units.
_EDGE = 12
_CAPTION = 40


class Frame(NamedTuple):
    """A picture of the screen as Textual exports it, its caption, and its duration (s)."""

    svg: str
    caption: str
    seconds: float


class _Piece(NamedTuple):
    """A drawn element; rectangles (layer 0) are below texts (layer 1)."""

    layer: int
    text: str


def strip(frames: Sequence[Frame]) -> str:
    """Return the animation; all frames must have the same size."""
    shown: dict[_Piece, list[int]] = {}
    styles: dict[str, str] = {}
    for number, frame in enumerate(frames):
        for piece in _pieces(frame, styles):
            if number not in shown.setdefault(piece, []):
                shown[piece].append(number)
    groups: dict[tuple[int, ...], list[_Piece]] = {}
    for piece, numbers in shown.items():
        groups.setdefault(tuple(numbers), []).append(piece)
    size = _SIZE.search(frames[0].svg)
    place = _PLACE.search(frames[0].svg)
    background = _BACKGROUND.search(frames[0].svg)
    assert size and place and background
    # Drop the window frame that Textual draws around the screen.
    width = float(size[1])
    height = _screen_height(frames[0]) + 2 * _EDGE + _CAPTION
    rules = [f".{name}{{{rule}}}" for rule, name in styles.items()]
    rules += [rule for numbers in groups for rule in _timing(numbers, frames)]
    drawn = [
        f'<g class="{_name(numbers)}">{"".join(piece.text for piece in pieces if piece.layer == layer)}</g>'
        for layer in (0, 1)
        for numbers, pieces in groups.items()
        if any(piece.layer == layer for piece in pieces)
    ]
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">',
            f"<title>{escape('; '.join(frame.caption for frame in frames))}</title>",
            f"<style>{_CSS}{''.join(rules)}</style>",
            f'<rect fill="{background[1]}" width="{width:g}" height="{height:g}" rx="8"/>',
            f'<g transform="translate({place[1]},{_EDGE})">',
            *drawn,
            "</g>",
            "</svg>\n",
        )
    )


def _pieces(frame: Frame, styles: dict[str, str]) -> list[_Piece]:
    """Return the elements of a frame; add new styles to `styles`."""
    named = {name: styles.setdefault(rule, f"c{len(styles)}") for name, rule in _STYLE.findall(frame.svg)}
    found = [
        _Piece(0, f'<rect fill="{fill}" x="{x}" y="{y}" width="{width}" height="{height}"/>')
        for fill, x, y, width, height in _RECTANGLE.findall(frame.svg)
    ]
    found += [
        _Piece(1, f'<text class="{named[style]}" x="{x}" y="{y}" textLength="{length}">{text}</text>')
        for style, x, y, length, text in _TEXT.findall(frame.svg)
        if text.replace("&#160;", "").strip()
    ]
    caption_style = styles.setdefault("fill:#ffffff;font-weight:bold", f"c{len(styles)}")
    y = _screen_height(frame) + _CAPTION - 8
    caption = f'<text class="{caption_style}" x="0" y="{y:g}">{escape(frame.caption)}</text>'
    return [*found, _Piece(1, caption)]


def _screen_height(frame: Frame) -> float:
    """Return the height of the screen without its window frame."""
    found = _SCREEN.search(frame.svg)
    assert found
    return float(found[1])


def _name(numbers: tuple[int, ...]) -> str:
    return "f" + "_".join(map(str, numbers))


def _timing(numbers: tuple[int, ...], frames: Sequence[Frame]) -> list[str]:
    """Return the CSS that shows an element only during these frames."""
    if len(numbers) == len(frames):
        return []
    duration, at, steps = sum(frame.seconds for frame in frames), 0.0, []
    for number, frame in enumerate(frames):
        steps.append(f"{100 * at / duration:.2f}%{{visibility:{'visible' if number in numbers else 'hidden'}}}")
        at += frame.seconds
    name = _name(numbers)
    without_animation = "visible" if len(frames) - 1 in numbers else "hidden"
    return [
        f".{name}{{visibility:{without_animation};animation:{name} {duration:g}s step-end infinite}}",
        f"@keyframes {name}{{{''.join(steps)}}}",
    ]

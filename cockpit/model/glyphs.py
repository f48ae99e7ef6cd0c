"""Glyphs, and what is shown instead where a terminal or an encoding lacks them."""

from __future__ import annotations

_BRAILLE = 0x2800
# Replacements of braille cells by number of dots.
_DOTS = " ..::++##"

# ASCII replacements, each as wide as its glyph; ordered sets (bars, trends, shades) keep their order.
ASCII: dict[str, str] = {
    **{chr(_BRAILLE + code): _DOTS[code.bit_count()] for code in range(256)},
    **dict(zip("▁▂▃▄▅▆▇█", "_.-=+*%#", strict=True)),
    **dict(zip("▏▎▍▌▋▊▉", "..---==", strict=True)),
    **dict(zip("▔▀▐▕", "'\"|'", strict=True)),
    **dict(zip("░▒▓", ":=%", strict=True)),
    # Lines and borders, also of Textual.
    **dict.fromkeys("─╌┄╍╴╶╸╺", "-"),
    "━": "=",
    # Percentiles over the shades of a heat map.
    **dict(zip("═≡", "~@", strict=True)),
    **dict.fromkeys("│┃║╎┆┊╵╷╹╻", "|"),
    "┊": ":",
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝╠╣╦╩╬┏┓┗┛┡┩┠┨╞╡", "+"),
    **dict.fromkeys("▖▗▘▝▙▛▜▟▚▞", "#"),
    # Arrows and marks.
    **dict(zip("←↑→↓", "<^>v", strict=True)),
    **dict(zip("▲▴▼▾▸▶◂◀", "^^vv>><<", strict=True)),
    **dict(zip("●○◆◇■□✓✔✗✘⭘", "*o**#o+*xxo", strict=True)),
    # Punctuation and signs of arithmetic.
    **dict(zip("…·•–—−", "~.*---", strict=True)),
    **dict(zip("“”„‘’‚", '"""\'\'`', strict=True)),
    **dict(zip("×÷±≈≠≤≥", "x/~~!<>", strict=True)),
    **dict(zip("µ°²³\xa0�", "uo23 ?", strict=True)),
}

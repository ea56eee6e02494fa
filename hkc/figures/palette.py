"""Colours. All are light enough for dark text, on light pages and on dark ones."""

from __future__ import annotations

import functools
import math

INK = "#16181d"
"""Text on coloured cells."""

CONFLICT = "#c8102e"
"""Banks that lanes wait for."""

IDLE = "#8a93a3"
"""What nobody uses, at low opacity."""

FAMILIES = (255.0, 165.0, 85.0, 15.0)
"""Hues of the four groups of 16 lanes: blue, green, amber, rose."""

GROUP = 16
"""Lanes that share a hue."""


@functools.cache
def lane(number: int) -> str:
    """A lane's colour: a hue for each 16 lanes, deeper with each lane of them."""
    step = number % GROUP / (GROUP - 1)
    return _oklch(0.95 - 0.2 * step, 0.035 + 0.085 * step, FAMILIES[number // GROUP % len(FAMILIES)])


@functools.cache
def wave(number: int) -> str:
    """A wave's colour: neighbours differ most, and from the 8th on they repeat a little darker."""
    return _oklch(0.86 - 0.1 * (number // 8 % 2), 0.1, 250 + 137.5 * (number % 8))


@functools.cache
def bank(number: int, banks: int) -> str:
    """A bank's colour on a wheel of `banks`, every other 16 bytes a little darker."""
    return _oklch(0.88 - 0.09 * (number // 4 % 2), 0.1, 360 * number / banks + 20)


def _oklch(lightness: float, chroma: float, hue: float) -> str:
    """A colour by perceived lightness, chroma and hue (Björn Ottosson's Oklab) as `#rrggbb`."""
    a, b = (chroma * f(math.radians(hue)) for f in (math.cos, math.sin))
    long, middle, short = (
        (lightness + x * a + y * b) ** 3
        for x, y in ((0.3963377774, 0.2158037573), (-0.1055613458, -0.0638541728), (-0.0894841775, -1.2914855480))
    )
    linear = (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )
    return "#" + "".join(f"{round(255 * _gamma(min(1.0, max(0.0, c)))):02x}" for c in linear)


def _gamma(linear: float) -> float:
    """The sRGB value of a linear one, both from 0 to 1."""
    return 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055

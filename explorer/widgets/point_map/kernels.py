"""The compiled half of the rasteriser. Importing it costs half a second (numba, LLVM): only `raster` does, late.

Pictures are premultiplied BGRA bytes, as QImage wants them. No `prange`: with numba's workqueue layer two threads
in parallel regions abort the process. All kernels release the GIL.
"""

from __future__ import annotations

import math

import numba
import numpy as np

compiled = numba.njit(nogil=True, cache=True)


@compiled
def _over(pixel, blue, green, red, alpha):
    """Puts a colour of opacity `alpha` (0..1) over one premultiplied pixel."""
    keep = 1.0 - alpha
    pixel[0] = np.uint8(pixel[0] * keep + blue * alpha + 0.5)
    pixel[1] = np.uint8(pixel[1] * keep + green * alpha + 0.5)
    pixel[2] = np.uint8(pixel[2] * keep + red * alpha + 0.5)
    pixel[3] = np.uint8(pixel[3] * keep + 255.0 * alpha + 0.5)


@compiled
def _coverage(dx, dy, radius, diamond):
    """Share of the pixel at distance (dx, dy) that a disc, or a diamond of the same area, covers."""
    if diamond:
        inside = (radius * 1.2533 - abs(dx) - abs(dy)) * 0.7071
    else:
        inside = radius - math.sqrt(dx * dx + dy * dy)
    return min(max(inside + 0.5, 0.0), 1.0)


@compiled
def stamp(picture, points, ranges, view, states, brush):
    """Draws each point whose state is in `states` as an antialiased mark at its exact place, one over the other.

    points: x, y, state, colour (k x 3 bytes per point index), diamond; view: left, top, pixels per unit x and y;
    brush: radius, opacity, halo width, halo red, green, blue (all in pixels and 0..255, opacity 0..1).
    """
    x, y, state, colour, diamond, palette = points
    left, top, across, down = view
    radius, opacity, halo, halo_red, halo_green, halo_blue = brush
    height, width = picture.shape[0], picture.shape[1]
    reach = radius * 1.2533 + halo + 1.0
    for k in range(ranges.shape[0]):
        for i in range(ranges[k, 0], ranges[k, 1]):
            if state[i] < states[0] or state[i] > states[1]:
                continue
            px = (x[i] - left) * across
            py = (top - y[i]) * down
            if px < -reach or py < -reach or px > width + reach or py > height + reach:
                continue
            red, green, blue = palette[colour[i], 0], palette[colour[i], 1], palette[colour[i], 2]
            extent = (radius + halo) * (1.2533 if diamond[i] else 1.0) + 0.5
            for row in range(max(int(py - extent), 0), min(int(py + extent) + 1, height)):
                for column in range(max(int(px - extent), 0), min(int(px + extent) + 1, width)):
                    dx, dy = column + 0.5 - px, row + 0.5 - py
                    if halo > 0.0:
                        around = _coverage(dx, dy, radius + halo, diamond[i])
                        if around == 0.0:
                            continue
                        _over(picture[row, column], halo_blue, halo_green, halo_red, around * opacity)
                    inside = _coverage(dx, dy, radius, diamond[i])
                    if inside > 0.0:
                        _over(picture[row, column], blue, green, red, inside * opacity)


@compiled
def gather(sums, points, ranges, view, states, linear):
    """Adds each point's linear colour and a count of one to the pixel it falls on."""
    x, y, state, colour, _diamond, palette = points
    left, top, across, down = view
    height, width = sums.shape[0], sums.shape[1]
    for k in range(ranges.shape[0]):
        for i in range(ranges[k, 0], ranges[k, 1]):
            if state[i] < states[0] or state[i] > states[1]:
                continue
            px = (x[i] - left) * across
            py = (top - y[i]) * down
            if px < 0.0 or py < 0.0 or px >= width or py >= height:
                continue
            row, column = int(py), int(px)
            sums[row, column, 0] += linear[palette[colour[i], 2]]
            sums[row, column, 1] += linear[palette[colour[i], 1]]
            sums[row, column, 2] += linear[palette[colour[i], 0]]
            sums[row, column, 3] += 1.0


@compiled
def spread(picture, sums, low, peak, encoded):
    """Lays the summed points over the picture: each spread to a small disc, opacity from `low` to 1 at `peak`."""
    height, width = sums.shape[0], sums.shape[1]
    for row in range(height):
        for column in range(width):
            blue = green = red = count = 0.0
            for j in range(max(row - 1, 0), min(row + 2, height)):
                for i in range(max(column - 1, 0), min(column + 2, width)):
                    if sums[j, i, 3] == 0.0:
                        continue
                    weight = 1.0 if (i == column and j == row) else (0.6 if (i == column or j == row) else 0.25)
                    blue += weight * sums[j, i, 0]
                    green += weight * sums[j, i, 1]
                    red += weight * sums[j, i, 2]
                    count += weight * sums[j, i, 3]
            if count > 0.0:
                alpha = min(count, 1.0) * (low + (1.0 - low) * min(math.log1p(count) / math.log1p(peak), 1.0))
                last = encoded.shape[0] - 1
                _over(
                    picture[row, column],
                    encoded[int(blue / count * last)],
                    encoded[int(green / count * last)],
                    encoded[int(red / count * last)],
                    alpha,
                )

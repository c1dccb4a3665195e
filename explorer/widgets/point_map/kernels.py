"""Compiled kernels of the point map; importing them takes 0.5 s (numba, LLVM), so only `loading` does.

Pictures are premultiplied BGRA bytes, as QImage wants them. No `prange`: with numba's workqueue layer two threads
in parallel regions abort the process. All kernels release the GIL.

Shared forms: `points` is (x, y, ink) in the order of the grid's cells, x and y from the grid's lowest corner;
`cells` is (start, side, counts) as `PointGrid` has them; `window` is first column, last column, first row, last row
of the cells to read; `view` is left, top, pixels per unit across and down.
"""

import math

import numba
import numpy as np

compiled = numba.njit(nogil=True, cache=True)

COLOR_BITS = 0x1FFF
DIAMOND_BIT = 0x2000
STATE_SHIFT = 14
PLAIN = 2
SIDE_WEIGHT = np.float32(0.55)


@compiled
def pack(color, diamond, lit, visible, first, last, ink):
    """Pack color, shape and state of the points of a part into 16 bits."""
    for i in range(first, last):
        state = PLAIN
        if len(visible) and not visible[i]:
            state = 0
        elif len(lit) and not lit[i]:
            state = 1
        ink[i] = (state << STATE_SHIFT) | (DIAMOND_BIT if diamond[i] else 0) | color[i]


@compiled
def take_packed(packed, order, first, last, ink, states):
    """Write what is packed in a part of the cell order, and count states in `states`."""
    counts = np.zeros(4, np.int64)  # of this thread: `states` lies next to those of others
    for i in range(first, last):
        ink[i] = packed[order[i]]
        counts[ink[i] >> STATE_SHIFT] += 1
    states += counts


@compiled
def bounds(xy, first, last):
    """Return the bounds of the finite positions in a part: left, bottom, right, top. Infinite if there are none."""
    left = bottom = np.inf
    right = top = -np.inf
    for i in range(first, last):
        x, y = float(xy[i, 0]), float(xy[i, 1])
        if math.isfinite(x) and math.isfinite(y):
            left, right = min(left, x), max(right, x)
            bottom, top = min(bottom, y), max(top, y)
    return left, bottom, right, top


@compiled
def number_cells(xy, first, last, low_x, low_y, cell_x, cell_y, side, number, counts):
    """Write the cell of each point of a part, -1 if not finite, and count the points of every cell."""
    for i in range(first, last):
        x, y = float(xy[i, 0]), float(xy[i, 1])
        if not (math.isfinite(x) and math.isfinite(y)):
            number[i] = -1
            continue
        column, row = _cell_at((x - low_x) / cell_x, side), _cell_at((y - low_y) / cell_y, side)
        number[i] = row * side + column
        counts[row * side + column] += 1


@compiled
def sort_points(number, first, last, filled, by_cell):
    """Write the points of a part behind those that already lie in their cells.

    filled: Where the next point of each cell goes; moved on.
    """
    for i in range(first, last):
        if number[i] >= 0:
            by_cell[filled[number[i]]] = i
            filled[number[i]] += 1


@compiled
def level_starts(counts, shares, start):
    """Write where each cell of each level begins. See `PointGrid` for the levels."""
    cells, levels = len(counts), len(shares)
    position = 0
    for level in range(levels):
        for c in range(cells):
            start[level * cells + c] = position
            position += _taken(counts[c], shares, level) - _taken(counts[c], shares, level - 1)
    start[levels * cells] = position


@compiled
def fill_levels(begin, shares, first, last, by_cell, start, order):
    """Order the points of a part of the cells by level, then by cell, randomly inside each cell.

    begin: Where the points of each cell begin in `by_cell`, which is shuffled.
    """
    cells, levels = len(begin) - 1, len(shares)
    for c in range(first, last):
        bits = np.uint64(88172645463325252) ^ (np.uint64(c + 1) * np.uint64(0x9E3779B97F4A7C15))
        for k in range(begin[c + 1] - begin[c] - 1, 0, -1):
            bits ^= bits << np.uint64(13)
            bits ^= bits >> np.uint64(7)
            bits ^= bits << np.uint64(17)
            other = begin[c] + np.int64((bits >> np.uint64(11)) % np.uint64(k + 1))
            current = begin[c] + k
            by_cell[current], by_cell[other] = by_cell[other], by_cell[current]
        low = 0
        for level in range(levels):
            high = _taken(begin[c + 1] - begin[c], shares, level)
            position = start[level * cells + c]
            for k in range(low, high):
                order[position + k - low] = by_cell[begin[c] + k]
            low = high


@compiled
def _taken(count, shares, level):
    """Return how many of a cell's points are in this level or an earlier one: at least one if it has any."""
    if level < 0 or count == 0:
        return 0
    return min(max(1, math.ceil(count * shares[level])), count)


@compiled
def offsets(xy, order, first, last, low_x, low_y, x, y):
    """Write the positions of a part of the order relative to the lower left corner."""
    for i in range(first, last):
        x[i] = xy[order[i], 0] - low_x
        y[i] = xy[order[i], 1] - low_y


@compiled
def nearest(xy, points, cells, window, order, allowed, center, reach, slack):
    """Return the allowed point nearest to `center` in units of `reach`; -1 if none is within one.

    Sorted places are rounded; whatever comes within `slack` of the best is measured again exactly. The first levels
    find some near point, so of the further ones only the cells around it are read.
    """
    x, y, low_x, low_y, cell_x, cell_y = points
    start, side, levels = cells
    best, nearest_point, bound = 1.0, -1, 1.0 + slack
    near_x, near_y = center[0] - low_x, center[1] - low_y
    for level in range(levels):
        first_row, last_row = _span(near_y, bound * reach[1], cell_y, window[2], window[3])
        for row in range(first_row, last_row + 1):
            first, last = _span(near_x, bound * reach[0], cell_x, window[0], window[1])
            base = (level * side + row) * side
            for i in range(start[base + first], start[base + last + 1]):
                dx, dy = (x[i] - near_x) / reach[0], (y[i] - near_y) / reach[1]
                if dx * dx + dy * dy > bound * bound:
                    continue
                point = order[i]
                if len(allowed) and not allowed[point]:
                    continue
                dx, dy = (xy[point, 0] - center[0]) / reach[0], (xy[point, 1] - center[1]) / reach[1]
                distance = dx * dx + dy * dy
                if distance < best or (distance == best and (nearest_point < 0 or point < nearest_point)):
                    best, nearest_point = distance, point
                    bound = math.sqrt(best) + slack
    return nearest_point


@compiled
def _span(middle, reach, cell, least, greatest):
    """Return the first and last cell within `reach` of a position, with one more at each end for rounding."""
    # Held within the window before it is a whole number: in cells of 1e-33 a reach of 1 is more than those go up to.
    low = math.floor(min(max((middle - reach) / cell, least), greatest + 1)) - 1
    high = math.floor(min(max((middle + reach) / cell, least - 1), greatest)) + 1
    return int(min(max(low, least), greatest)), int(max(min(high, greatest), least))


@compiled
def outline(side, corners):
    """Return what is known of each cell for a polygon in units of cells, and the edges that share each row.

    Cells: 0 outside, 1 inside, 2 near an edge. Edges: their numbers row after row, and where each row begins.
    """
    decided, turns = np.zeros((side, side), np.uint8), np.zeros((side, side + 1), np.int32)
    begin = np.zeros(side + 1, np.int64)
    count = len(corners)
    for e in range(count):
        f = (e + 1) % count
        _touch(decided, corners[e, 0], corners[e, 1], corners[f, 0], corners[f, 1])
        _turn(turns, corners[e, 0], corners[e, 1], corners[f, 0], corners[f, 1])
        low, high = _rows(corners[e, 1], corners[f, 1], side)
        for row in range(low, high):
            begin[row + 1] += 1
    for row in range(side):
        begin[row + 1] += begin[row]
    edges, filled = np.empty(begin[side], np.int32), begin[:-1].copy()
    for e in range(count):
        low, high = _rows(corners[e, 1], corners[(e + 1) % count, 1], side)
        for row in range(low, high):
            edges[filled[row]] = e
            filled[row] += 1
    for row in range(side):
        turn = 0
        for column in range(side):
            turn += turns[row, column]
            if decided[row, column] == 0 and turn != 0:
                decided[row, column] = 1
    return decided, edges, begin


@compiled
def mark_inside(xy, first, last, low_x, low_y, per_x, per_y, polygon, outline, inside):
    """Mark the points of a part that are inside the closed polygon (nonzero rule, Sunday's crossing test).

    Points of cells near an edge are tested exactly. All are read in the order in which they lie in memory: to visit
    those of the cells alone would jump.

    per_x, per_y: Cells per unit; what rounding moves across an edge of a cell is near no edge of the polygon.
    """
    decided, edges, begin = outline
    side, cells = np.uint32(decided.shape[0]), decided.ravel()
    for i in range(first, last):
        x, y = float(xy[i, 0]), float(xy[i, 1])
        if not (math.isfinite(x) and math.isfinite(y)):
            inside[i] = False
            continue
        row = np.uint32(_cell_at((y - low_y) * per_y, side))
        decision = cells[row * side + np.uint32(_cell_at((x - low_x) * per_x, side))]
        if decision == 2:
            decision = _winds(xy[i, 0], xy[i, 1], polygon, edges[begin[row] : begin[row + 1]])
        inside[i] = decision


@compiled
def _cell_at(value, side):
    return int(min(max(value, 0.0), side - 1.0))


@compiled
def write_marked(marked, first, last, rows):
    """Fill `rows` with the places of what is marked in a part, ascending."""
    position = 0
    for i in range(first, last):
        if position == len(rows):
            break
        # Without a branch on the mark, which a processor would guess wrong half of the time.
        rows[position] = i
        position += marked[i]


@compiled
def _whole(value, low, high):
    """Return an integer clamped to the range, since corners may be 1e22 cells away."""
    return int(min(max(value, low), high))


@compiled
def _rows(y0, y1, side):
    low, high = math.floor(min(y0, y1)) - 1, math.floor(max(y0, y1)) + 2
    return _whole(low, 0, side), _whole(high, 0, side)


@compiled
def _touch(touched, x0, y0, x1, y1):
    side = touched.shape[0]
    if x0 > x1:
        x0, y0, x1, y1 = x1, y1, x0, y0
    first, last = _whole(math.floor(x0) - 1, 0, side), _whole(math.floor(x1) + 1, -1, side - 1)
    slope = (y1 - y0) / (x1 - x0) if x1 > x0 else 0.0
    for column in range(first, last + 1):
        a = y0 if column <= x0 else y0 + slope * (column - x0)
        b = y1 if column + 1 >= x1 else y0 + slope * (column + 1 - x0)
        low, high = _rows(a, b, side)
        for row in range(low, high):
            touched[row, column] = 2


@compiled
def _turn(turns, x0, y0, x1, y1):
    """Add the edge's turn to the cells to its right, row by row."""
    side = turns.shape[0]
    low, high = min(y0, y1), max(y0, y1)
    for row in range(_whole(math.ceil(low - 0.5), 0, side), _whole(math.ceil(high - 0.5), 0, side)):
        x = x0 + (row + 0.5 - y0) * (x1 - x0) / (y1 - y0)
        turns[row, _whole(math.ceil(x - 0.5), 0, side)] += 1 if y1 < y0 else -1


@compiled
def _winds(x, y, polygon, edges):
    turns = 0
    for e in edges:
        f = (e + 1) % len(polygon)
        x0, y0, x1, y1 = polygon[e, 0], polygon[e, 1], polygon[f, 0], polygon[f, 1]
        if not (min(y0, y1) <= y < max(y0, y1)):
            continue
        left = (x1 - x0) * (y - y0) - (x - x0) * (y1 - y0)
        if y1 > y0:
            turns += 1 if left > 0 else 0
        else:
            turns += -1 if left < 0 else 0
    return turns != 0


@compiled
def _over(pixel, blue, green, red, alpha):
    """Blend a color of opacity `alpha` (0..1) over one premultiplied pixel."""
    keep = 1.0 - alpha
    pixel[0] = np.uint8(pixel[0] * keep + blue * alpha + 0.5)
    pixel[1] = np.uint8(pixel[1] * keep + green * alpha + 0.5)
    pixel[2] = np.uint8(pixel[2] * keep + red * alpha + 0.5)
    pixel[3] = np.uint8(pixel[3] * keep + 255.0 * alpha + 0.5)


@compiled
def _coverage(dx, dy, radius, diamond):
    """Return the share of the pixel at distance (dx, dy) covered by a disc, or by a diamond of the same area."""
    if diamond:
        inside = (radius * 1.2533 - abs(dx) - abs(dy)) * 0.7071
    else:
        inside = radius - math.sqrt(dx * dx + dy * dy)
    return min(max(inside + 0.5, 0.0), 1.0)


@compiled
def _stamp_one(picture, px, py, red, green, blue, diamond, brush):
    radius, opacity, halo, halo_red, halo_green, halo_blue = brush
    height, width = picture.shape[0], picture.shape[1]
    extent = (radius + halo) * (1.2533 if diamond else 1.0) + 0.5
    for row in range(max(int(py - extent), 0), min(int(py + extent) + 1, height)):
        for column in range(max(int(px - extent), 0), min(int(px + extent) + 1, width)):
            dx, dy = column + 0.5 - px, row + 0.5 - py
            if halo > 0.0:
                around = _coverage(dx, dy, radius + halo, diamond)
                if around == 0.0:
                    continue
                _over(picture[row, column], halo_blue, halo_green, halo_red, around * opacity)
            inside = _coverage(dx, dy, radius, diamond)
            if inside > 0.0:
                _over(picture[row, column], blue, green, red, inside * opacity)


@compiled
def stamp(picture, points, cells, window, view, state, brush, palette):
    """Draw each point of `state` as an antialiased mark at its exact position.

    brush: radius, opacity, halo width, halo red, green, blue (pixels and 0..255, opacity 0..1). Dimmed points take
    the palette's last color.
    """
    x, y, ink = points
    start, side, levels = cells
    left, top, across, down = view
    height, width = picture.shape[0], picture.shape[1]
    reach = (brush[0] + brush[2]) * 1.2533 + 1.0
    for level in range(levels):
        for row in range(window[2], window[3] + 1):
            base = (level * side + row) * side
            for i in range(start[base + window[0]], start[base + window[1] + 1]):
                if ink[i] >> STATE_SHIFT != state:
                    continue
                px = (x[i] - left) * across
                py = (top - y[i]) * down
                if px < -reach or py < -reach or px > width + reach or py > height + reach:
                    continue
                color = ink[i] & COLOR_BITS if state == PLAIN else len(palette) - 1
                red, green, blue = palette[color, 0], palette[color, 1], palette[color, 2]
                _stamp_one(picture, px, py, red, green, blue, ink[i] & DIAMOND_BIT != 0, brush)


@compiled
def stamp_some(picture, points, some, view, brush, palette):
    """Draw the points at these places of the order as colored marks: a small selection over a density."""
    x, y, ink = points
    left, top, across, down = view
    height, width = picture.shape[0], picture.shape[1]
    reach = (brush[0] + brush[2]) * 1.2533 + 1.0
    for i in some:
        px = (x[i] - left) * across
        py = (top - y[i]) * down
        if -reach <= px <= width + reach and -reach <= py <= height + reach:
            color = ink[i] & COLOR_BITS
            red, green, blue = palette[color, 0], palette[color, 1], palette[color, 2]
            _stamp_one(picture, px, py, red, green, blue, ink[i] & DIAMOND_BIT != 0, brush)


@compiled
def _splat(bright, faint, points, begin, end, view, linear, weight, states):
    """Add a range of points to their pixels; return sum and pixels of both layers.

    Written flat, with unsigned indices: this loop is most of what drawing ten million points takes.
    """
    xs, ys, inks = points
    left, top, across, down = view
    width, height = np.float64(bright.shape[1] - 2), np.float64(bright.shape[0])
    bright_sum = faint_sum = np.float32(0)
    bright_pixels = faint_pixels = 0
    for i in range(begin, end):
        px, py = (xs[i] - left) * across, (top - ys[i]) * down
        if not (0.0 <= px < width and 0.0 <= py < height):
            continue
        ink = np.uint32(inks[i])
        state = ink >> np.uint32(STATE_SHIFT)
        if not (states >> state) & 1:
            continue
        row, column = np.uint64(np.int64(py)), np.uint64(np.int64(px)) + np.uint64(1)
        if state == np.uint32(PLAIN):
            color = np.uint64(ink & np.uint32(COLOR_BITS))
            count = bright[row, column, np.uint64(3)]
            if count == 0:
                bright_pixels += 1
            bright_sum += weight
            bright[row, column, np.uint64(0)] += weight * linear[color, np.uint64(0)]
            bright[row, column, np.uint64(1)] += weight * linear[color, np.uint64(1)]
            bright[row, column, np.uint64(2)] += weight * linear[color, np.uint64(2)]
            bright[row, column, np.uint64(3)] = count + weight
        else:
            count = faint[row, column]
            if count == 0:
                faint_pixels += 1
            faint_sum += weight
            faint[row, column] = count + weight
    return bright_sum, bright_pixels, faint_sum, faint_pixels


@compiled
def gather(bright, faint, points, cells, window, view, linear, depth, states, report):
    """Sum the points of the first `depth` levels per pixel, each cell weighted to its true count.

    bright: height x (width + 2) x 4 sums of linear blue, green, red and of points; faint: the same of dimmed points.
    states: Bit 1: dimmed points are drawn, bit 2: points in their color are. report: sum and pixels of both layers.
    """
    start, side, levels, counts = cells
    unit = np.float32(1)
    if depth == levels:
        for level in range(levels):
            for row in range(window[2], window[3] + 1):
                base = (level * side + row) * side
                begin, end = start[base + window[0]], start[base + window[1] + 1]
                _report_progress(report, _splat(bright, faint, points, begin, end, view, linear, unit, states))
        return
    for row in range(window[2], window[3] + 1):
        for column in range(window[0], window[1] + 1):
            cell = row * side + column
            if counts[cell] == 0:
                continue
            drawn = 0
            for level in range(depth):
                drawn += start[level * side * side + cell + 1] - start[level * side * side + cell]
            weight = np.float32(counts[cell] / drawn)
            for level in range(depth):
                base = level * side * side + cell
                if start[base + 1] > start[base]:
                    part = _splat(bright, faint, points, start[base], start[base + 1], view, linear, weight, states)
                    _report_progress(report, part)


@compiled
def _report_progress(report, part):
    report[0] += part[0]
    report[1] += part[1]
    report[2] += part[2]
    report[3] += part[3]


@compiled
def gather_some(bright, faint, points, some, view, linear, report):
    """Sum the points at these places of the order: a small selection, drawn completely."""
    unit = np.float32(1)
    for i in some:
        _report_progress(report, _splat(bright, faint, points, i, i + 1, view, linear, unit, 1 << PLAIN))


@compiled
def sum_fine_cells(points, cells, fine_cell, factor, linear, into):
    """Sum the points of every fine cell into `into`, as `CellSums` has them; return how many have points.

    One row of the grid's cells at a time: its sums stay in the processor's cache.
    """
    x, y, ink = points
    start, side, levels = cells
    row_start, column, plain, dimmed, color = into
    fine_side = side * factor
    sums = np.zeros((factor, fine_side, 5), np.float32)
    n = 0
    for row in range(side):
        for level in range(levels):
            base = (level * side + row) * side
            for i in range(start[base], start[base + side]):
                state = ink[i] >> STATE_SHIFT
                if state == 0:
                    continue
                fine_row = min(max(int(y[i] / fine_cell[1]) - row * factor, 0), factor - 1)
                cell = sums[fine_row, min(int(x[i] / fine_cell[0]), fine_side - 1)]
                if state != PLAIN:
                    cell[4] += np.float32(1)
                    continue
                rgb = linear[ink[i] & COLOR_BITS]
                for channel in range(3):
                    cell[channel] += rgb[channel]
                cell[3] += np.float32(1)
        for fine_row in range(factor):
            for c in range(fine_side):
                cell = sums[fine_row, c]
                if cell[3] == 0 and cell[4] == 0:
                    continue
                column[n], plain[n], dimmed[n], color[n] = c, cell[3], cell[4], 0
                for channel in range(3):
                    mean = cell[channel] / max(cell[3], np.float32(1))
                    color[n] |= np.uint32(255 * mean ** (1 / 2.2) + 0.5) << np.uint32(8 * channel)
                n += 1
                cell[:] = 0
            row_start[row * factor + fine_row + 1] = n
    return n


@compiled
def gather_cells(bright, faint, cells, fine_cell, view, decoded, states, report):
    """Add the sums of fine cells to the pixels that they cover, by the share of each, as `gather` adds points.

    A row of fine cells is shared out across first, then as a whole between two rows of pixels.

    decoded: The linear value of each gamma-encoded byte.
    """
    row_start = cells[0]
    left, top, across, down = view
    width, height = bright.shape[1] - 2, bright.shape[0]
    unit, offset, first = np.float32(1), np.float32(1 - left * across), max(int(left / fine_cell[0]) - 1, 0)
    cell_width, cell_height = np.float32(fine_cell[0] * across), np.float32(fine_cell[1] * down)
    # Flat sums of blue, green, red, points and dimmed points: of a row of cells, and of the two rows of pixels.
    lines = np.zeros((3, 5 * (width + 2)), np.float32)
    line, lower, upper = lines[0], lines[1], lines[2]  # one by one: the compiler takes unpacked rows for spread ones
    row = height
    for r in range(len(row_start) - 1):
        py = (top - (r + 1) * fine_cell[1]) * down
        if py <= -cell_height or py >= height:
            continue
        while row > math.floor(py):
            _take_line(bright, faint, row + 1, upper, report)
            upper, lower = lower, upper
            row -= 1
        low, high = _share_across(line, cells, r, first, cell_width, offset, decoded, states)
        if low < high:
            share = min((row + 1 - np.float32(py)) / cell_height, unit)
            _add_share(lower[low:high], line[low:high], share)
            _add_share(upper[low:high], line[low:high], unit - share)
            line[low:high] = 0
    _take_line(bright, faint, row + 1, upper, report)
    _take_line(bright, faint, row, lower, report)


@compiled
def _add_share(into, line, share):
    for k in range(len(into)):  # of two parts of arrays: only so does the compiler take several at a time
        into[k] += share * line[k]


@compiled
def _share_across(line, cells, r, first, cell_width, offset, decoded, states):
    """Add one row of fine cells to the line; return the part of the line that was written to."""
    row_start, columns, plain, dimmed, colors = cells
    draws_plain, draws_dimmed = (states >> PLAIN) & 1, (states >> 1) & 1
    unit, byte, end = np.float32(1), np.uint32(255), row_start[r + 1]
    per_pixel = unit / cell_width
    low, high = np.int64(len(line)), np.int64(0)
    for i in range(row_start[r] + np.searchsorted(columns[row_start[r] : end], first), end):
        px = np.float32(columns[i]) * cell_width + offset
        if px < 0:
            continue
        column = np.int32(px)
        position = 5 * np.int64(column)
        if position > len(line) - 10:
            break
        low, high, k = min(low, position), position + np.int64(10), np.uint64(position)
        share = min((np.float32(column) + unit - px) * per_pixel, unit)
        if draws_plain:
            here, color = plain[i] * share, colors[i]
            beside = plain[i] - here
            blue, green = decoded[color & byte], decoded[(color >> np.uint32(8)) & byte]
            red = decoded[color >> np.uint32(16)]
            line[k] += here * blue
            line[k + np.uint64(1)] += here * green
            line[k + np.uint64(2)] += here * red
            line[k + np.uint64(3)] += here
            line[k + np.uint64(5)] += beside * blue
            line[k + np.uint64(6)] += beside * green
            line[k + np.uint64(7)] += beside * red
            line[k + np.uint64(8)] += beside
        if draws_dimmed:
            line[k + np.uint64(4)] += dimmed[i] * share
            line[k + np.uint64(9)] += dimmed[i] * (unit - share)
    return low, high


@compiled
def _take_line(bright, faint, row, line, report):
    """Move a line of sums to a row of pixels, if there is one."""
    if 0 <= row < bright.shape[0]:
        for column in range(1, bright.shape[1] - 1):
            k = 5 * column
            if line[k + 3] > 0:
                report[0] += line[k + 3]
                report[1] += 1
                for channel in range(4):
                    bright[row, column, channel] = line[k + channel]
            if line[k + 4] > 0:
                report[2] += line[k + 4]
                report[3] += 1
                faint[row, column] = line[k + 4]
    line[:] = 0


@compiled
def tone(picture, sums, rows, low, peak, curve, encoded):
    """Draw the summed points on the picture, each spread to 3 x 3 pixels, and clear the sums.

    Opacity goes from `low` to 1 at `peak` points, along `curve` (by the root of the share of the peak). rows: three
    rows of sums, kept between calls.
    """
    height, width = sums.shape[0], sums.shape[1] - 2
    last, steps, scale = np.float32(encoded.shape[0] - 1), np.float32(len(curve) - 1), np.float32(1 / peak)
    low, unit = np.float32(low), np.float32(1)
    rows[:] = 0
    for r in range(height + 1):
        into = rows[r % 3]
        if r < height:
            source = sums[r].ravel()
            for k in range(4, 4 * width + 4):
                into[k] = source[k] + SIDE_WEIGHT * (source[k - 4] + source[k + 4])
            source[:] = 0
        else:
            into[:] = 0
        if r == 0:
            continue
        above, middle, out = rows[(r + 1) % 3], rows[(r + 2) % 3], picture[r - 1]
        for column in range(width):
            k = 4 * column + 4
            count = middle[k + 3] + SIDE_WEIGHT * (above[k + 3] + into[k + 3])
            if count <= 0:
                continue
            share = curve[int(math.sqrt(min(count * scale, unit)) * steps)]
            alpha = min(count, unit) * (low + (unit - low) * share)
            part, pixel = last / count, out[column]
            blue = middle[k] + SIDE_WEIGHT * (above[k] + into[k])
            green = middle[k + 1] + SIDE_WEIGHT * (above[k + 1] + into[k + 1])
            red = middle[k + 2] + SIDE_WEIGHT * (above[k + 2] + into[k + 2])
            _over(
                pixel,
                encoded[min(int(blue * part), len(encoded) - 1)],
                encoded[min(int(green * part), len(encoded) - 1)],
                encoded[min(int(red * part), len(encoded) - 1)],
                alpha,
            )


@compiled
def tone_gray(picture, sums, low, peak, curve, gray):
    """Draw dimmed points in one color (blue, green, red), each spread to 3 x 3 pixels, and clear the sums."""
    height, width = sums.shape[0], sums.shape[1] - 2
    steps, scale = np.float32(len(curve) - 1), np.float32(1 / peak)
    low, unit = np.float32(low), np.float32(1)
    rows = np.zeros((3, width + 2), np.float32)
    for r in range(height + 1):
        into = rows[r % 3]
        if r < height:
            source = sums[r]
            for k in range(1, width + 1):
                into[k] = source[k] + SIDE_WEIGHT * (source[k - 1] + source[k + 1])
            source[:] = 0
        else:
            into[:] = 0
        if r == 0:
            continue
        above, middle, out = rows[(r + 1) % 3], rows[(r + 2) % 3], picture[r - 1]
        for column in range(width):
            count = middle[column + 1] + SIDE_WEIGHT * (above[column + 1] + into[column + 1])
            if count > 0:
                share = curve[int(math.sqrt(min(count * scale, unit)) * steps)]
                alpha = min(count, unit) * (low + (unit - low) * share)
                _over(out[column], gray[0], gray[1], gray[2], alpha)

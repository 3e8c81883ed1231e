"""One box against eight, for CPUs; texts that follow `ROWS`.

A row holds one number of each of eight boxes, so a box is compared with all of them by some ten instructions, and the
answer is a mask. A box is given by integer codes (`bvh.lbvh`), lower corner and negated upper corner: six at one
instant, twelve where it moves, first those at its beginning. Boxes meet where no sum of codes crosswise is positive.
"""

from __future__ import annotations

#: `meeting(box, row)`: which of eight boxes of six codes meet a box; `lane_meeting(box, step, row)`: the same where the
#: numbers of the box are `step` apart; `chosen(mask)`: the lanes of a mask (`lanes_by_mask`, the argument `lanes`).
STATIC_BOXES = """
    auto lane_meeting = [&](const int* box, int step, const Row* row) -> int {  // its numbers are so far apart
        const Row x = __builtin_elementwise_max(row[3] + box[0], row[0] + box[3 * step]);
        const Row y = __builtin_elementwise_max(row[4] + box[step], row[1] + box[4 * step]);
        const Row z = __builtin_elementwise_max(row[5] + box[2 * step], row[2] + box[5 * step]);
        return bits(__builtin_elementwise_max(__builtin_elementwise_max(x, y), z) <= 0);
    };
    auto meeting = [&](const int* box, const Row* row) -> int { return lane_meeting(box, 1, row); };
    auto chosen = [&](int mask) -> Row {
        return __builtin_convertvector(*(const Bytes*)&lanes.data[mask], Row);
    };
"""
#: `boxes_meeting(box, node)`: which of the eight boxes of twelve codes of a node, in the argument `rows`, meet a box.
MOVING_BOXES = """
    auto boxes_meeting = [&](const int* box, int node) -> int {
        const Row* r = (const Row*)&rows.data[12 * node];
        Row apart = (Row)(-1);
        for (int k = 0; k < 3; ++k) {
            const Row below = __builtin_elementwise_min(r[3 + k] + box[k], r[9 + k] + box[6 + k]);
            const Row above = __builtin_elementwise_min(r[k] + box[3 + k], r[6 + k] + box[9 + k]);
            apart = __builtin_elementwise_max(apart, __builtin_elementwise_max(below, above));
        }
        return bits(apart <= 0);
    };
"""

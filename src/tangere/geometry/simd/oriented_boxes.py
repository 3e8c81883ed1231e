"""One oriented box against eight, for CPUs: which are near, and at least how far they are; texts that follow `ROWS`.

A row holds one number of each of eight boxes: three of the centres, three half sizes, and the three axes, 15 rows of
float32. The 15-axis test of `geometry.obb.overlap`. To every comparison a slack is added, which must cover the distance
in question and the rounding of the one box's centre to float32, 2^-22 of its coordinates; what float32 does to
products, and the skew of the axes (`SKEW`), are counted in here, as a part of the sizes of both boxes and of the way
between them: with e = 2^-24, an offset is off by at most 4 e of that way, cosines by 4 e, reaches by 8 e and the skew
of 16 e of the half sizes.
An edge axis is a product of two axes and not longer than 1: what separates along it by more than a slack is farther.
Known as: separating axis test of OBBs (Gottschalk, Lin and Manocha 1996).
"""

from __future__ import annotations

#: `oriented_meeting(row, c, m, h, slack)`: which of eight boxes are not apart by more than `slack` from a box with
#: centre c, axes m[0], m[1], m[2] and half sizes h. Edge axes are asked only where face axes leave any.
ORIENTED_BOXES = """
    typedef float Lane __attribute__((ext_vector_type(8), aligned(4)));
    typedef const float Axes[3];
    auto oriented_meeting = [&](const Lane* row, const float* c, Axes* m, const float* h, float slack) -> int {
        const Lane x = c[0] - row[0], y = c[1] - row[1], z = c[2] - row[2];
        const Lane sizes = row[3] + row[4] + row[5] + (h[0] + h[1] + h[2]);
        const Lane ways = __builtin_elementwise_abs(x) + __builtin_elementwise_abs(y) + __builtin_elementwise_abs(z);
        const Lane room = slack + 0x1p-19f * (ways + sizes);
        Lane offset[3], cosine[3][3], size[3][3];
        Row apart = (Row)0;
        for (int i = 0; i < 3; ++i) {
            const Lane ax = row[6 + 3 * i], ay = row[7 + 3 * i], az = row[8 + 3 * i];
            offset[i] = ax * x + ay * y + az * z;
            for (int j = 0; j < 3; ++j) {
                cosine[i][j] = ax * m[j][0] + ay * m[j][1] + az * m[j][2];
                size[i][j] = __builtin_elementwise_abs(cosine[i][j]);
            }
            const Lane reach = size[i][0] * h[0] + size[i][1] * h[1] + size[i][2] * h[2];
            apart |= __builtin_elementwise_abs(offset[i]) > row[3 + i] + reach + room;
        }
        for (int j = 0; j < 3; ++j) {
            const Lane along = x * m[j][0] + y * m[j][1] + z * m[j][2];
            const Lane reach = size[0][j] * row[3] + size[1][j] * row[4] + size[2][j] * row[5];
            apart |= __builtin_elementwise_abs(along) > h[j] + reach + room;
        }
        int mask = 255 & ~bits(apart);
        if (mask == 0)
            return 0;
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j) {
                const int i1 = (i + 1) % 3, i2 = (i + 2) % 3, j1 = (j + 1) % 3, j2 = (j + 2) % 3;
                const Lane along = offset[i2] * cosine[i1][j] - offset[i1] * cosine[i2][j];
                const Lane reach = row[3 + i1] * size[i2][j] + row[3 + i2] * size[i1][j]
                    + h[j1] * size[i][j2] + h[j2] * size[i][j1];
                apart |= __builtin_elementwise_abs(along) > reach + room;
            }
        return 255 & ~bits(apart);
    };
"""
#: `oriented_distances(row, c, m, h, slack, length) -> bound`: lower bounds of the distances of eight boxes from such a
#: box, below 0 where they may meet, and the lengths of the ways between centres; what `bvh.obb.boxes_at_least` bounds.
#: The room is taken off each of three gaps, and of the root of their squares 2^-19: axes are orthonormal to 18 e, and
#: the root is rounded. Along the line of centres the supports of both boxes are taken off, with products of the way and
#: half sizes over its length: 26 e of the sizes, 7 e of the way. Numbers and their squares must be within float32:
#: lengths from 1e-9 to 1e15.
ORIENTED_DISTANCES = """
    typedef float Lane __attribute__((ext_vector_type(8), aligned(4)));
    typedef const float Axes[3];
    auto oriented_distances = [&](const Lane* row, const float* c, Axes* m, const float* h, float slack,
                                  Lane& length) -> Lane {
        const Lane none = (Lane)0.0f;
        const Lane x = c[0] - row[0], y = c[1] - row[1], z = c[2] - row[2];
        const Lane sizes = row[3] + row[4] + row[5] + (h[0] + h[1] + h[2]);
        const Lane ways = __builtin_elementwise_abs(x) + __builtin_elementwise_abs(y) + __builtin_elementwise_abs(z);
        const Lane room = slack + 0x1p-19f * (ways + sizes);
        Lane reach[3] = {none, none, none}, squared = none, other = none, extent = none;
        for (int i = 0; i < 3; ++i) {
            const Lane ax = row[6 + 3 * i], ay = row[7 + 3 * i], az = row[8 + 3 * i];
            const Lane offset = __builtin_elementwise_abs(ax * x + ay * y + az * z);
            Lane gap = offset - row[3 + i] - room;
            for (int j = 0; j < 3; ++j) {
                const Lane cosine = __builtin_elementwise_abs(ax * m[j][0] + ay * m[j][1] + az * m[j][2]);
                gap -= cosine * h[j];
                reach[j] += cosine * row[3 + i];
            }
            gap = __builtin_elementwise_max(gap, none);
            squared += gap * gap;
            extent += offset * row[3 + i];
        }
        for (int j = 0; j < 3; ++j) {
            const Lane along = __builtin_elementwise_abs(x * m[j][0] + y * m[j][1] + z * m[j][2]);
            const Lane gap = __builtin_elementwise_max(along - h[j] - reach[j] - room, none);
            other += gap * gap;
            extent += along * h[j];
        }
        length = __builtin_elementwise_sqrt(x * x + y * y + z * z);
        const Lane across = __builtin_elementwise_sqrt(__builtin_elementwise_max(squared, other)) * (1.0f - 0x1p-19f);
        const Lane between = length - extent / __builtin_elementwise_max(length, (Lane)1.0e-30f) - room;
        return __builtin_elementwise_max(across, between);
    };
"""

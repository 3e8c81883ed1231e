"""Conservative advancement of one box against four, for CPUs.

Method:   as `conservative_advancement`, in coordinates along the axes of the single box. `place_bodies` puts down where
          the bodies are at an instant, as each of them sees the other. All four boxes start there; those that have
          moved on by a good part of their size are evaluated again, each at its own time, up to four times, where both
          motions are steady.
Sound:    as there. Coordinates along float32 axes are no rotation to the last digit: a triple product of them is off by
          at most 4 eta of the lengths that go in, where eta = 3 x 2^-23 is what the Gram matrix of the axes is off;
          `skew` is more than that, and is added to every bound that has such a product.
Layout:   a row of a matrix is four numbers, the last of which is of no use, or one number of four vectors.
"""

from __future__ import annotations

import warp as wp

from tangere.geometry.simd.four_oriented_boxes import FOUR_WIDE, ONE_AGAINST_FOUR, SINES
from tangere.query.first_contact.rigid.conservative_advancement import Pair, Relative

#: float64 numbers of `Bodies`: two views, and the motion of one body as the other sees it.
BODIES = 2 * (3 + 3 + 3) * 4 + 2 * (9 + 3) * 4

#: `Bodies`: at an instant each body as the other sees it (`View`); and, where only one of them turns, its motion in the
#: frame of the other as `SteadyMotion` has it (`Course`), for the single box in the one (0) and in the other (1).
_BODIES = """
    typedef double Loose __attribute__((ext_vector_type(4), aligned(8)));
    struct View {
        Loose turn[3];  // rows of the rotation of the other body
        Loose state[3];  // number by number: place and velocity of its pivot, its spin, and the own spin
        Loose drift[3];  // number by number, in the first lane
    };
    struct Course { Loose p[3], s[3], k[3], way[3]; };  // way: number by number begin, velocity, sway, bow
    struct Bodies { View view[2]; Course course[2]; };
    Bodies& bodies = *(Bodies*)&scratch.data[base];
    auto row_of = [](const double* x) -> Wide { return *(const Loose*)x; };
    auto times_rows = [&](const Wide& x, const Wide& y, const Wide& z, const Loose* rows) -> Wide {
        return fused(x, rows[0], fused(y, rows[1], z * rows[2]));
    };
    auto all = [](double x) -> Wide { return (Wide)x; };
"""
#: View 1 from view 0.
_OTHER_VIEW = """
    {
        View &a = bodies.view[0], &b = bodies.view[1];
        Loose swapped[3];
        for (int i = 0; i < 3; ++i)
            swapped[i] = Loose{-a.state[i][0], -a.state[i][1], a.state[i][3], a.state[i][2]};
        for (int i = 0; i < 3; ++i) {
            const Wide x = all(a.turn[0][i]), y = all(a.turn[1][i]), z = all(a.turn[2][i]);
            b.turn[i] = Loose{a.turn[0][i], a.turn[1][i], a.turn[2][i], 0.0};
            b.state[i] = times_rows(x, y, z, swapped);
            b.drift[i] = -times_rows(x, y, z, a.drift);
        }
    }
"""


@wp.func_native(
    FOUR_WIDE
    + _BODIES
    + """
    View& view = bodies.view[0];
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j)
            view.turn[i][j] = now.rotation.data[i][j];
        view.turn[i][3] = 0.0;
        view.state[i] = Loose{now.point.c[i], now.linear.c[i], now.angular_b.c[i], now.angular_a.c[i]};
        view.drift[i] = Loose{now.drift.c[i], 0.0, 0.0, 0.0};
    }
"""
    + _OTHER_VIEW
)
def place_bodies(now: Relative, scratch: wp.array[wp.uint64], base: int):
    """Put down where both bodies are at an instant."""
    ...


@wp.func_native(
    FOUR_WIDE
    + SINES
    + _BODIES
    + """
    const auto& pair = pairs.data[job];
    const auto &a = pair.steady_a, &b = pair.steady_b;
    View& view = bodies.view[0];
    // Of a: the rows of its rotation taken back, which are columns; of b: its rows.
    Wide back[3], turned[3];
    Wide place = row_of(b.at.c) - row_of(a.at.c), speed = row_of(b.velocity.c) - row_of(a.velocity.c);
    const Wide bent = row_of(pair.bounds_b.drift.c) - row_of(pair.bounds_a.drift.c);
    place = fused(all(tau), speed, place);
    Wide sine = zero, versine = zero;
    if (a.turns | b.turns)
        sine_of_twice(Wide{a.half_begin + a.half * tau, b.half_begin + b.half * tau, 0.0, 0.0}, sine, versine);
    for (int i = 0; i < 3; ++i) {
        back[i] = Wide{a.p.data[0][i], a.p.data[1][i], a.p.data[2][i], 0.0};
        if (a.turns)
            back[i] += sine[0] * Wide{a.s.data[0][i], a.s.data[1][i], a.s.data[2][i], 0.0}
                + versine[0] * Wide{a.k.data[0][i], a.k.data[1][i], a.k.data[2][i], 0.0};
        turned[i] = row_of(b.p.data[i]);
        if (b.turns)
            turned[i] += sine[1] * row_of(b.s.data[i]) + versine[1] * row_of(b.k.data[i]);
    }
    if (a.bends) {
        place -= sine[0] * row_of(a.sway.c) + versine[0] * row_of(a.bow.c);
        speed -= 2.0 * a.half * ((1.0 - versine[0]) * row_of(a.sway.c) + sine[0] * row_of(a.bow.c));
    }
    if (b.bends) {
        place += sine[1] * row_of(b.sway.c) + versine[1] * row_of(b.bow.c);
        speed += 2.0 * b.half * ((1.0 - versine[1]) * row_of(b.sway.c) + sine[1] * row_of(b.bow.c));
    }
    Loose states[3];
    for (int i = 0; i < 3; ++i)
        states[i] = Loose{place[i], speed[i], b.spin.c[i], a.spin.c[i]};
    for (int i = 0; i < 3; ++i) {
        const Wide x = all(back[i][0]), y = all(back[i][1]), z = all(back[i][2]);
        view.turn[i] = fused(x, turned[0], fused(y, turned[1], z * turned[2]));
        view.state[i] = times_rows(x, y, z, states);
        view.drift[i] = (Loose)all(back[i][0] * bent[0] + back[i][1] * bent[1] + back[i][2] * bent[2]);
    }
"""
    + _OTHER_VIEW
)
def place_steady_bodies(pairs: wp.array[Pair], job: int, tau: wp.float64, scratch: wp.array[wp.uint64], base: int):
    """Put down where both bodies are at an instant, where their motions are steady."""
    ...


@wp.func_native(
    FOUR_WIDE
    + _BODIES
    + """
    const auto& pair = pairs.data[job];
    const bool moving_b = !pair.steady_a.turns;
    if (!pair.steady || (pair.steady_a.turns && pair.steady_b.turns))
        return;
    // The body that does not turn, and the one that may.
    const auto &still = moving_b ? pair.steady_a : pair.steady_b, &turning = moving_b ? pair.steady_b : pair.steady_a;
    Course &seen = bodies.course[0], &seeing = bodies.course[1];
    auto back = [&](const double* x, int i) -> double {
        return still.p.data[0][i] * x[0] + still.p.data[1][i] * x[1] + still.p.data[2][i] * x[2];
    };
    double apart[3], velocity[3];
    for (int i = 0; i < 3; ++i) {
        apart[i] = turning.at.c[i] - still.at.c[i];
        velocity[i] = turning.velocity.c[i] - still.velocity.c[i];
    }
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
            const double p[3] = {turning.p.data[0][j], turning.p.data[1][j], turning.p.data[2][j]};
            const double s[3] = {turning.s.data[0][j], turning.s.data[1][j], turning.s.data[2][j]};
            const double k[3] = {turning.k.data[0][j], turning.k.data[1][j], turning.k.data[2][j]};
            seen.p[i][j] = seeing.p[j][i] = back(p, i);
            seen.s[i][j] = seeing.s[j][i] = back(s, i);
            seen.k[i][j] = seeing.k[j][i] = back(k, i);
        }
        seen.p[i][3] = seen.s[i][3] = seen.k[i][3] = seeing.p[i][3] = seeing.s[i][3] = seeing.k[i][3] = 0.0;
        seen.way[i] = seeing.way[i] =
            Loose{back(apart, i), back(velocity, i), back(turning.sway.c, i), back(turning.bow.c, i)};
    }
"""
)
def place_course(pairs: wp.array[Pair], job: int, scratch: wp.array[wp.uint64], base: int):
    """Put down the motion of one body in the frame of the other, where at most one of them turns, at steady rates."""
    ...


_ADVANCE = """
    const auto& pair = pairs.data[job];
    const double skew = 3.8147e-06, longest = 1.0 + 2.0e-6, never = 1.0e30, tiny = 1.0e-300;
    const float* rows_s = single_is_a ? rows_a.data : rows_b.data;
    const float* rows_l = single_is_a ? rows_b.data : rows_a.data;
    const auto& bound_s = single_is_a ? pair.bounds_a : pair.bounds_b;
    const auto& bound_l = single_is_a ? pair.bounds_b : pair.bounds_a;
    const View& view = bodies.view[single_is_a ? 0 : 1];
    const double keep = pair.keep;
    const bool moving_s = single_is_a == (bool)pair.steady_a.turns;  // the one whose course the other sees
    const bool turns_s = bound_s.spin > 0.0, turns_l = bound_l.spin > 0.0, turns = turns_s | turns_l;

    auto product = [&](const Wide* x, const auto* y) -> Wide {
        return fused(x[0], (Wide)y[0], fused(x[1], (Wide)y[1], x[2] * (Wide)y[2]));
    };
    auto cross = [](const auto* x, const auto* y, auto* z) {
        z[0] = x[1] * y[2] - x[2] * y[1];
        z[1] = x[2] * y[0] - x[0] * y[2];
        z[2] = x[0] * y[1] - x[1] * y[0];
    };
    auto turned = [&](const auto& steady, Wide sine, Wide versine, int i, int j) -> Wide {
        const Wide versed = fused(versine, all(steady.k.data[i][j]), all(steady.p.data[i][j]));
        return fused(sine, all(steady.s.data[i][j]), versed);
    };
    auto swaying = [&](const auto& steady, Wide sine, Wide versine, int i) -> Wide {
        return 2.0 * steady.half * fused(unit - versine, all(steady.sway.c[i]), sine * steady.bow.c[i]);
    };

    // The single box: q[i][k] is number k of its axis i, in all lanes.
    const float* box = rows_s + (long long)(single >> 2) * 64 + (single & 3);
    Wide q[3][3];
    double from[3], half[3];
    for (int i = 0; i < 3; ++i) {
        from[i] = (double)box[4 * i] - bound_s.pivot.c[i];
        half[i] = (double)box[4 * (3 + i)];
        for (int j = 0; j < 3; ++j)
            q[j][i] = all((double)box[4 * (6 + 3 * i + j)]);
    }
    const double radius_s = (double)box[60];
    double arm[3];  // its centre seen from its body's pivot
    for (int i = 0; i < 3; ++i)
        arm[i] = q[i][0][0] * from[0] + q[i][1][0] * from[1] + q[i][2][0] * from[2];

    // The four boxes.
    const float* row = rows_l + (long long)node * 64;
    auto wide_row = [&](int k) -> Wide { return __builtin_convertvector(*(const Narrow*)(row + 4 * k), Wide); };
    Wide axes[3][3], size[3], e[3];
    for (int i = 0; i < 3; ++i) {
        e[i] = wide_row(i) - bound_l.pivot.c[i];
        size[i] = wide_row(3 + i);
        for (int j = 0; j < 3; ++j)
            axes[i][j] = wide_row(6 + 3 * i + j);
    }
    const Wide radius = wide_row(15);
    typedef int Four __attribute__((ext_vector_type(4), aligned(4)));
    typedef long long Long __attribute__((ext_vector_type(4)));
    const Four children = *(const Four*)((single_is_a ? children_b : children_a).data + 4 * (long long)node);
    const Whole present = __builtin_convertvector(children != 0x7fffffff, Whole);

    // Where the other body is: its rotation, place and velocity, and both spins, along q.
    Wide m0[3][3], off[3], vel[3], om_l[3], drift[3];
    double spin_s[3];
    for (int i = 0; i < 3; ++i) {
        const Wide turn = times_rows(q[i][0], q[i][1], q[i][2], view.turn);
        const Wide state = times_rows(q[i][0], q[i][1], q[i][2], view.state);
        for (int j = 0; j < 3; ++j)
            m0[i][j] = all(turn[j]);
        off[i] = all(state[0] - arm[i]);
        vel[i] = all(state[1]);
        om_l[i] = all(state[2]);
        spin_s[i] = state[3];
        drift[i] = straight ? vel[i] : all(times_rows(q[i][0], q[i][1], q[i][2], view.drift)[0]);
    }

    // How far points are from the axes of the turns; and 1 over the angular speeds now, which take a spin back to its
    // axis: not over the largest ones, from which those of screws and on the smooth clock differ.
    double rho_s = 0.0, inverse_s = 0.0, inverse_l = 0.0;
    auto inverse_of = [&](double x, double y, double z, double largest) -> double {
        const double speed = __builtin_sqrt(x * x + y * y + z * z);
        return repeated ? longest / largest : longest / (speed > 1.0e-9 * largest ? speed : 0.0);
    };
    auto across_of = [&](const Wide* x, bool fixed_axis, double inverse) -> Wide {
        return fixed_axis && inverse < never ? root_of(product(x, x)) * inverse + skew : all(longest);
    };
    Wide rho = zero;
    if (turns_s) {
        const double* u = bound_s.axis.c;
        double x[3] = {from[0], from[1], from[2]};
        if (bound_s.fixed_axis)
            cross(from, u, x);
        rho_s = __builtin_sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]) + radius_s;
        inverse_s = inverse_of(spin_s[0], spin_s[1], spin_s[2], bound_s.spin);
    }
    if (turns_l) {
        const double* u = bound_l.axis.c;
        Wide x[3] = {e[0], e[1], e[2]};
        if (bound_l.fixed_axis)
            cross(e, u, x);
        rho = root_of(product(x, x)) + radius;
        inverse_l = inverse_of(om_l[0][0], om_l[1][0], om_l[2][0], bound_l.spin);
    }
    const double bend_s = bound_s.acceleration + bound_s.turn * rho_s + bound_l.acceleration;
    const Wide bend = 0.5 * longest * (bend_s + bound_l.turn * rho);
    const double swing = longest * (bound_s.swing + bound_l.swing) + skew * pair.speed;
    const Wide worth = 0.1 * smaller(radius, all(radius_s));

    // What spins fast is also taken as the balls about its pivots that hold the boxes.
    double ball_s = 0.0, rate_of_balls = 0.0;
    Wide ball = zero;
    if (pair.spins) {
        double d = 0.0;
        for (int i = 0; i < 3; ++i) {
            const double corner = __builtin_fabs(arm[i]) + half[i];
            const double step = pair.bounds_b.drift.c[i] - pair.bounds_a.drift.c[i];
            ball_s += corner * corner;
            d += step * step;
            const Wide far = absolute(fused(e[0], axes[0][i], fused(e[1], axes[1][i], e[2] * axes[2][i]))) + size[i];
            ball = fused(far, far, ball);
        }
        ball_s = longest * __builtin_sqrt(ball_s);
        ball = longest * root_of(ball);
        rate_of_balls = longest * (__builtin_sqrt(d) + bound_s.swing + bound_l.swing);
    }
    auto step_of = [&](Wide gap, Wide rate) -> Wide {
        return gap > zero ? (rate <= zero ? all(never) : gap / rate) : zero;
    };
    auto step_of_balls = [&](const Wide (&c)[3], const Wide (&m)[3][3]) -> Wide {
        Wide y[3], to_l = zero, to_s = zero, between = zero, length = zero;
        for (int i = 0; i < 3; ++i) {
            y[i] = c[i] + arm[i];
            length = fused(y[i], y[i], length);
            const Wide beyond = larger(absolute(off[i]) - half[i], zero), pivots = off[i] + arm[i];
            to_s = fused(beyond, beyond, to_s);
            between = fused(pivots, pivots, between);
        }
        for (int j = 0; j < 3; ++j) {
            const Wide along = fused(y[0], m[0][j], fused(y[1], m[1][j], y[2] * m[2][j]));
            const Wide beyond = larger(absolute(along) - size[j], zero);
            to_l = fused(beyond, beyond, to_l);
        }
        const Wide from_s = root_of(to_l) / longest - skew * root_of(length), from_l = root_of(to_s) / longest;
        const Wide one = step_of(from_s - ball_s - keep, rate_of_balls + longest * bound_l.spin * rho);
        const Wide other = step_of(from_l - ball - keep, all(rate_of_balls + longest * bound_s.spin * rho_s));
        const Wide both = step_of(root_of(between) / longest - ball_s - ball - keep, all(rate_of_balls));
        return larger(larger(one, other), both);
    };

    Wide time = all(tau), best = time;
    Whole active = present;
    int passes = 0;
    double h0[3][3], h1[3][3], h2[3][3], way[3][4];
    for (;;) {
        Wide m[3][3], c[3], reach[3], n[3];
        for (int i = 0; i < 3; ++i) {
            for (int j = 0; j < 3; ++j)
                m[i][j] = fused(m0[i][0], axes[0][j], fused(m0[i][1], axes[1][j], m0[i][2] * axes[2][j]));
            reach[i] = product(m0[i], e);
            c[i] = reach[i] + off[i];
        }
        const Wide gap = separate(c, m, half, size, keep, n) - keep;
        Wide rate = swing - product(n, vel);
        Wide h;
        if (turns | !straight) {
            Wide first = straight ? rate : swing - product(n, drift);
            if (turns_l) {
                Wide x[3], support = zero;
                cross(n, om_l, x);
                for (int j = 0; j < 3; ++j) {
                    const Wide along = fused(m[0][j], x[0], fused(m[1][j], x[1], m[2][j] * x[2]));
                    support = fused(size[j], absolute(along), support);
                }
                rate += support - product(reach, x);
                first += across_of(x, bound_l.fixed_axis, inverse_l) * bound_l.spin * rho;
            }
            if (turns_s) {
                Wide x[3];
                cross(n, spin_s, x);
                for (int j = 0; j < 3; ++j)
                    rate += fused(all(half[j]), absolute(x[j]), arm[j] * x[j]);
                first += across_of(x, bound_s.fixed_axis, inverse_s) * (bound_s.spin * rho_s);
            }
            const Wide root = root_of(fused(rate, rate, 4.0 * bend * gap));
            const Whole closing = rate > zero;
            h = (closing ? gap + gap : root - rate) / larger(closing ? rate + root : bend + bend, all(tiny));
            h = ((rate <= zero) & (bend <= tiny)) ? all(never) : h;  // what is not a number stays so: it moves nothing
            h = larger(h, first <= zero ? all(never) : gap / first);
            if (pair.spins)
                h = larger(h, step_of_balls(c, m));
        } else
            h = rate <= zero ? all(never) : gap / rate;
        const Wide reached = time + h;
        const Whole further = (gap > zero) & active & (reached > best);
        best = further ? reached : best;
        ++passes;
        active = further & (gap >= worth) & (best <= until);
        if (!repeated || passes >= evaluations || !bits_of(active))
            break;
        time = best;
        // Both bodies at the time of each lane.
        if (!(turns_s & turns_l)) {
            const Course& course = bodies.course[moving_s ? 1 : 0];
            if (passes == 1)
                for (int i = 0; i < 3; ++i) {
                    const Wide seen = times_rows(q[i][0], q[i][1], q[i][2], course.way);
                    *(Loose*)way[i] = moving_s ? course.way[i] : (Loose)seen;
                    if (turns) {
                        const Wide p = times_rows(q[i][0], q[i][1], q[i][2], course.p);
                        const Wide s = times_rows(q[i][0], q[i][1], q[i][2], course.s);
                        const Wide k = times_rows(q[i][0], q[i][1], q[i][2], course.k);
                        for (int j = 0; j < 3; ++j) {
                            h0[i][j] = p[j];
                            h1[i][j] = s[j];
                            h2[i][j] = k[j];
                        }
                    }
                }
            Wide place[3], speed[3];
            if (turns) {
                const auto& steady = single_is_a == turns_s ? pair.steady_a : pair.steady_b;
                Wide sine, versine;
                sine_of_twice(fused(time, all(steady.half), all(steady.half_begin)), sine, versine);
                for (int i = 0; i < 3; ++i) {
                    for (int j = 0; j < 3; ++j)
                        m0[i][j] = fused(sine, all(h1[i][j]), fused(versine, all(h2[i][j]), all(h0[i][j])));
                    place[i] = fused(time, all(way[i][1]), all(way[i][0]));
                    speed[i] = all(way[i][1]);
                    if (!straight) {
                        place[i] += fused(sine, all(way[i][2]), versine * way[i][3]);
                        speed[i] += 2.0 * steady.half * fused(unit - versine, all(way[i][2]), sine * way[i][3]);
                    }
                }
            } else
                for (int i = 0; i < 3; ++i)
                    place[i] = fused(time, all(way[i][1]), all(way[i][0]));
            for (int i = 0; i < 3; ++i) {
                if (moving_s) {  // the other body does not turn: its pivot as the moving one sees it
                    off[i] = -product(m0[i], place) - arm[i];
                    if (turns)
                        vel[i] = -product(m0[i], speed);
                    if (turns & !straight) {  // along the axes of that body first
                        const auto& still = single_is_a ? pair.steady_b : pair.steady_a;
                        double seen[3] = {0.0, 0.0, 0.0};
                        for (int j = 0; j < 3; ++j)
                            for (int k = 0; k < 3; ++k)
                                seen[k] += still.p.data[j][k] * (bound_l.drift.c[j] - bound_s.drift.c[j]);
                        drift[i] = product(m0[i], seen);
                    }
                } else {
                    off[i] = place[i] - arm[i];
                    if (turns & !straight)
                        vel[i] = speed[i];
                }
            }
        } else {
            const auto& steady_s = single_is_a ? pair.steady_a : pair.steady_b;
            const auto& steady_l = single_is_a ? pair.steady_b : pair.steady_a;
            Wide sine_l, versine_l, sine_s, versine_s, rl[3][3], rs[3][3], position[3], velocity[3];
            sine_of_twice(fused(time, all(steady_l.half), all(steady_l.half_begin)), sine_l, versine_l);
            sine_of_twice(fused(time, all(steady_s.half), all(steady_s.half_begin)), sine_s, versine_s);
            for (int i = 0; i < 3; ++i) {
                for (int j = 0; j < 3; ++j) {
                    rl[i][j] = turned(steady_l, sine_l, versine_l, i, j);
                    rs[i][j] = turned(steady_s, sine_s, versine_s, i, j);
                }
                const double apart = steady_l.at.c[i] - steady_s.at.c[i];
                const double v = steady_l.velocity.c[i] - steady_s.velocity.c[i];
                position[i] = fused(time, all(v), all(apart));
                velocity[i] = all(v);
                if (steady_l.bends) {
                    position[i] += fused(sine_l, all(steady_l.sway.c[i]), versine_l * steady_l.bow.c[i]);
                    velocity[i] += swaying(steady_l, sine_l, versine_l, i);
                }
                if (steady_s.bends) {
                    position[i] -= fused(sine_s, all(steady_s.sway.c[i]), versine_s * steady_s.bow.c[i]);
                    velocity[i] -= swaying(steady_s, sine_s, versine_s, i);
                }
            }
            for (int i = 0; i < 3; ++i) {
                Wide back[3];
                for (int j = 0; j < 3; ++j)
                    back[j] = fused(q[i][0], rs[j][0], fused(q[i][1], rs[j][1], q[i][2] * rs[j][2]));
                for (int j = 0; j < 3; ++j)
                    m0[i][j] = fused(back[0], rl[0][j], fused(back[1], rl[1][j], back[2] * rl[2][j]));
                off[i] = product(back, position) - arm[i];
                vel[i] = product(back, velocity);
                om_l[i] = product(back, steady_l.spin.c);
                drift[i] = vel[i];
                if (!straight)
                    drift[i] = product(back, bound_l.drift.c) - product(back, bound_s.drift.c);
            }
        }
    }
    double* times = (double*)&scratch.data[lanes];
    for (int k = 0; k < 4; ++k)
        times[k] = best[k];
    scratch.data[lanes + 4] += (unsigned long long)(passes * __builtin_popcount(bits_of(present)));
    return (int)(bits_of(present) | bits_of(active) << 4);
"""


@wp.func_native(FOUR_WIDE + SINES + ONE_AGAINST_FOUR + _BODIES + _ADVANCE)
def advance_lanes(
    pairs: wp.array[Pair],
    job: int,
    rows_a: wp.array[wp.float32],
    children_a: wp.array[int],
    rows_b: wp.array[wp.float32],
    children_b: wp.array[int],
    single: int,
    node: int,
    single_is_a: bool,
    tau: wp.float64,
    until: wp.float64,
    repeated: bool,
    straight: bool,
    evaluations: int,
    scratch: wp.array[wp.uint64],
    lanes: int,
    base: int,
) -> int:
    """Times until which one box and the four of a node certainly stay apart, >= tau.

    Returns the mask of the boxes that are there, and above it (<< 4) of those which are worth another evaluation.

    Args:
        single: the place of the single box in the tree of a, if `single_is_a`, else of b; `node` is of the other tree.
        repeated: both motions are steady: boxes may be evaluated again at their own times, `evaluations` times at most.
        straight: the pivots go straight at constant rates.
        scratch: where the four times go, at `lanes`, as float64; at lanes + 4 evaluated pairs are counted; at `base`
            `place_bodies` has put down where the bodies are at tau.
    """
    ...

"""In which order the bodies of an island are eliminated, and where that makes fill.

Question: which blocks of 6 x 6 does the Cholesky factor of an island's matrix have?
Method:   the graph of bodies that share rows, as a set of bits for each body. The body with the fewest neighbours goes
          next (the first of equals); its neighbours become neighbours of each other: sets of bits that are joined. What
          a body is joined with when it goes is its column of the factor.
Known as: minimum degree ordering (Tinney and Walker 1967; George and Liu 1989), symbolic factorisation.
"""

from __future__ import annotations

import warp as wp

from tangere.dynamics.solver.islands import IslandArrays
from tangere.dynamics.solver.whitened_rows import WhitenedRows
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_ONE = wp.constant(wp.uint64(1))
_ZERO = wp.constant(wp.uint64(0))


@wp.struct
class EliminationArrays:
    """The order and the columns of each island; those of island k lie from islands.body_first[k] on."""

    chosen: wp.array[wp.int32]  # islands that are factored
    bits_first: wp.array[wp.int32]  # of each chosen one: where its words of bits begin
    bits: wp.array[wp.uint64]  # neighbours of each body, by place in the island
    place: wp.array[wp.int32]  # of each body: its place in body_order, counted within the island
    degree: wp.array[wp.int32]  # of each place: neighbours left; -1 when eliminated
    eliminated: wp.array[wp.int32]  # the place that goes at each position
    position: wp.array[wp.int32]  # and at which position each place goes
    fill: wp.array[wp.int32]  # blocks below the diagonal of each position's column
    blocks: wp.array[wp.int32]  # of each chosen island: all of them; -1 if they cost too much
    block_first: wp.array[wp.int32]  # where those of each chosen island begin
    column_first: wp.array[wp.int32]  # of each position: where its column begins
    block_row: wp.array[wp.int32]  # of each block: the position of its row
    c_block: wp.array[wp.int32]  # of each contact of two bodies: the block they share
    j_block: wp.array[wp.int32]  # and of each joint row


@wp.func
def words_for(bodies: int) -> int:
    return (bodies + 63) / 64


@wp.func
def bit(place: int) -> wp.uint64:
    return _ONE << wp.uint64(place % 64)


@wp.func
def join(order: EliminationArrays, base: int, words: int, a: int, b: int):
    """Make two places neighbours."""
    at = base + a * words + b / 64
    order.bits[at] = order.bits[at] | bit(b)
    at = base + b * words + a / 64
    order.bits[at] = order.bits[at] | bit(a)


@wp.func
def neighbours(order: EliminationArrays, at: int, words: int) -> int:
    count = int(0)
    for k in range(words):
        count += int(wp.bit_count(order.bits[at + k]))
    return count


@wp.kernel
def order_islands(
    first: int, islands: IslandArrays, rows: WhitenedRows, most_products: wp.float64, order: EliminationArrays
):
    """The elimination order of a chosen island and the sizes of its columns, on one thread.

    An island whose factor takes more than `most_products` products of blocks for each of its rows is given up.
    """
    q = first + wp.tid()
    island = order.chosen[q]
    begin = islands.body_first[island]
    n = islands.body_first[island + 1] - begin
    words = words_for(n)
    base = order.bits_first[q]
    for p in range(n):
        order.place[islands.body_order[begin + p]] = p
    for k in range(n * words):
        order.bits[base + k] = _ZERO
    for i in range(islands.contact_first[island], islands.contact_first[island + 1]):
        if rows.c_a[i] >= 0 and rows.c_b[i] >= 0:
            join(order, base, words, order.place[rows.c_a[i]], order.place[rows.c_b[i]])
    for i in range(islands.joint_first[island], islands.joint_first[island + 1]):
        if rows.j_a[i] >= 0 and rows.j_b[i] >= 0:
            join(order, base, words, order.place[rows.j_a[i]], order.place[rows.j_b[i]])
    for p in range(n):
        order.degree[begin + p] = neighbours(order, base + p * words, words)
    total = int(0)
    contacts = islands.contact_first[island + 1] - islands.contact_first[island]
    joints = islands.joint_first[island + 1] - islands.joint_first[island]
    left = most_products * wp.float64(contacts + joints)
    for at in range(n):
        least = int(n + 1)
        p = int(0)
        for k in range(n):
            d = order.degree[begin + k]
            if d >= 0 and d < least:
                least = d
                p = k
        order.eliminated[begin + at] = p
        order.position[begin + p] = at
        order.fill[begin + at] = least
        order.degree[begin + p] = -1
        total += least
        left -= wp.float64(0.5) * wp.float64(least) * wp.float64(least)
        if left < wp.float64(0.0):
            order.blocks[q] = -1
            return
        row = base + p * words
        for w in range(words):
            word = order.bits[row + w]
            while word != _ZERO:
                low = word & (~word + _ONE)
                word = word & (word - _ONE)
                other = 64 * w + int(wp.bit_count(low - _ONE))
                out = base + other * words
                for k in range(words):
                    order.bits[out + k] = order.bits[out + k] | order.bits[row + k]
                order.bits[out + other / 64] = order.bits[out + other / 64] & ~bit(other)
                order.bits[out + p / 64] = order.bits[out + p / 64] & ~bit(p)
                order.degree[begin + other] = neighbours(order, out, words)
    order.blocks[q] = total


@wp.func
def block_of(order: EliminationArrays, begin: int, a: int, b: int) -> int:
    """The block that two bodies share: in the column of whoever goes first, the row of the other."""
    p = order.position[begin + order.place[a]]
    q = order.position[begin + order.place[b]]
    column = begin + wp.min(p, q)
    row = wp.max(p, q)
    low = order.column_first[column]
    high = low + order.fill[column]
    while low < high:
        middle = (low + high) / 2
        if order.block_row[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


@wp.func
def list_columns(islands: IslandArrays, rows: WhitenedRows, order: EliminationArrays, q: int):
    """The rows of each column as sorted positions, and the block of each row of two bodies."""
    island = order.chosen[q]
    begin = islands.body_first[island]
    n = islands.body_first[island + 1] - begin
    words = words_for(n)
    base = order.bits_first[q]
    at = int(order.block_first[q])
    for column in range(n):
        order.column_first[begin + column] = at
        start = int(at)
        row = base + order.eliminated[begin + column] * words
        for w in range(words):
            word = order.bits[row + w]
            while word != _ZERO:
                low = word & (~word + _ONE)
                word = word & (word - _ONE)
                position = order.position[begin + 64 * w + int(wp.bit_count(low - _ONE))]
                k = int(at)
                while k > start and order.block_row[wp.max(k - 1, 0)] > position:
                    order.block_row[k] = order.block_row[k - 1]
                    k -= 1
                order.block_row[k] = position
                at += 1
    for i in range(islands.contact_first[island], islands.contact_first[island + 1]):
        if rows.c_a[i] >= 0 and rows.c_b[i] >= 0:
            order.c_block[i] = block_of(order, begin, rows.c_a[i], rows.c_b[i])
    for i in range(islands.joint_first[island], islands.joint_first[island + 1]):
        if rows.j_a[i] >= 0 and rows.j_b[i] >= 0:
            order.j_block[i] = block_of(order, begin, rows.j_a[i], rows.j_b[i])

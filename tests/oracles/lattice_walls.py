"""Walls and obstacles of grids of squares or cubes, kept as sets of the smallest facets and cells there may be.

Nothing of the library's marks is used: what is blocked and freed is written down in numbers of a lattice, in which a
cell's middle has odd numbers only and a facet's middle one even number.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components


class Finest:
    """What is blocked in a map whose cells are boxes, down to cells of a level."""

    def __init__(self, map, deepest: int) -> None:
        self.map, self.h = map, 0.5**deepest
        self.walls: set[tuple[int, ...]] = set()
        self.obstacles: set[tuple[int, ...]] = set()
        self.all = self.of_box(map.positions)

    def of_box(self, corners: np.ndarray) -> set[tuple[int, ...]]:
        """The finest cells or facets of the box around some points."""
        low, high = (np.round(f(axis=0)[: self.map.dimension] / self.h).astype(int) for f in (corners.min, corners.max))
        sides = [[2 * a] if a == b else range(2 * a + 1, 2 * b, 2) for a, b in zip(low.tolist(), high.tolist())]
        return set(product(*sides))

    def facet(self, dart: int) -> set[tuple[int, ...]]:
        """What the edge (2-maps) or face (3-maps) of a dart covers."""
        phi1, around = self.map.numpy("phi1"), [dart, int(self.map.numpy("phi1")[dart])]
        while self.map.dimension == 3 and around[-1] != dart:
            around.append(int(phi1[around[-1]]))
        return self.of_box(self.map.positions[self.map.numpy("origin")[around]])

    def cell(self, cell: int) -> set[tuple[int, ...]]:
        """What a leaf covers."""
        darts = self.map.darts[self.map.numpy("cell")[self.map.darts] == cell]
        return self.of_box(self.map.positions[self.map.numpy("origin")[darts]])

    def below(self, cell: int) -> set[tuple[int, ...]]:
        """What a cell covers, split or not."""
        children = self.map.children(cell)
        return set().union(*map(self.below, children)) if children else self.cell(cell)

    def block(self, kind: str, number: int, blocked: bool) -> None:
        """Do it in the map, and write it down."""
        covered, held = (self.below(number), self.obstacles) if kind == "cell" else (self.facet(number), self.walls)
        self.map.block(kind, [number], blocked=blocked)
        held.update(covered) if blocked else held.difference_update(covered)

    def check(self) -> None:
        """Every cell and every dart is marked as was written down."""
        obstacle, tags = self.map.numpy("obstacle"), self.map.numpy("tag")
        for c in self.map.leaves.tolist():
            covered = self.cell(c)
            assert covered <= self.obstacles or not covered & self.obstacles, f"cell {c} is an obstacle in part"
            assert obstacle[c] == (covered <= self.obstacles), f"obstacle mark of cell {c}"
        for d in self.map.darts.tolist():
            covered = self.facet(d)
            closed = [self.is_closed(key) for key in covered]
            assert all(closed) == any(closed), f"dart {d} is a wall in part"
            assert (tags[d] >> 12) & 1 == all(closed), f"wall mark of dart {d}"

    def is_closed(self, facet: tuple[int, ...]) -> bool:
        """Whether a finest facet is blocked, or beside an obstacle."""
        return facet in self.walls or any(cell in self.obstacles for cell in self.beside(facet))

    def beside(self, facet: tuple[int, ...]) -> list[tuple[int, ...]]:
        axis = next(i for i, k in enumerate(facet) if k % 2 == 0)
        return [tuple(k + step * (i == axis) for i, k in enumerate(facet)) for step in (-1, 1)]

    def rooms(self) -> dict[tuple[int, ...], int]:
        """The room of every finest cell: cells with an open facet between them are in one."""
        number = {key: i for i, key in enumerate(sorted(self.all))}
        links = []
        for key in self.all:
            for axis in range(len(key)):
                facet = tuple(k + (i == axis) for i, k in enumerate(key))
                there = self.beside(facet)[1]
                if there in number and not self.is_closed(facet):
                    links.append((number[key], number[there]))
        rows = np.array(links, int).reshape(-1, 2)
        graph = coo_matrix((np.ones(len(rows)), rows.T), shape=(len(number),) * 2)
        labels = connected_components(graph, directed=False)[1]
        return {key: int(labels[i]) for key, i in number.items()}

"""Copies of coarse tetrahedra by what of a finer material hangs together in them.

Question: material that coarse tetrahedra carry has been cut; which of its tetrahedra still move together, and by what?
Method:   what of the material hangs together within a coarse tetrahedron is a piece, and every piece has a copy of it.
          Where pieces hang together across a face of the material, their copies have the corners in common that their
          coarse tetrahedra have; all others are apart.
Sound:    parts of the material have no corner in common. Corners of one copy are of different coarse vertices.
Known as: virtual nodes by connectivity (Molino, Bao and Fedkiw 2004; Teran et al. 2005; Sifakis et al. 2007).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components


def copies_of(home: np.ndarray, neighbours: np.ndarray, coarse: np.ndarray) -> np.ndarray:
    """(n, 4) dofs at the corners of the copy that each tetrahedron of the material is in.

    Args:
        home: (n,) the coarse tetrahedron of each.
        neighbours: (n, 4): 4 o + j beyond each facet, or -1.
        coarse: (k, 4) vertices of the coarse ones.
    """
    count = len(home)
    one, facet = np.nonzero(neighbours >= 0)
    other = neighbours[one, facet] >> 2
    same = home[one] == home[other]
    pieces, piece = connected_components(_graph(one[same], other[same], count), directed=False)
    home_of = np.zeros(pieces, np.int64)
    home_of[piece] = home
    pairs = np.unique(np.stack([piece[one[~same]], piece[other[~same]]], axis=1), axis=0)
    ours, theirs = coarse[home_of[pairs[:, 0]]], coarse[home_of[pairs[:, 1]]]
    pair, j, k = np.nonzero(ours[:, :, None] == theirs[:, None, :])
    links = _graph(4 * pairs[pair, 0] + j, 4 * pairs[pair, 1] + k, 4 * pieces)
    _, node = connected_components(links, directed=False)
    return node.reshape(-1, 4)[piece].astype(np.int64)


def _graph(one: np.ndarray, other: np.ndarray, count: int) -> coo_matrix:
    return coo_matrix((np.ones(len(one), np.int8), (one, other)), shape=(count, count))

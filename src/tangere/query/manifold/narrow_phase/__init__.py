"""Where one body rests on one face, edge, vertex or wall of the ground."""

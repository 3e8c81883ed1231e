"""Batches of primitives under linear motion: vertex-face, edge-edge and what is made of them."""

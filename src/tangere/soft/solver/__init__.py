"""Vertex block descent: sweeps over the vertices, with Anderson acceleration."""

"""The nearest triangles, on CPUs: eight oriented boxes and eight pairs of triangles at a time."""

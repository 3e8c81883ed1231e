"""First contact of two meshes whatever moves them, by interval bounds of their motions."""

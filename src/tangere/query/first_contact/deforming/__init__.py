"""First contact of meshes whose vertices move along lines."""

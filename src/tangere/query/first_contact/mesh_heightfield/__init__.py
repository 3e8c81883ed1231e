"""First contact of moving meshes with the ground."""

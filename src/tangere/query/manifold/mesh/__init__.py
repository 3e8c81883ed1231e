"""Contact manifolds with rigid meshes."""

"""What of bodies, meshes and ground is nearer than a distance."""

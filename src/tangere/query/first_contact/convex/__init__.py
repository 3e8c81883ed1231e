"""First contact of moving analytic bodies: with each other, and with rigid meshes."""

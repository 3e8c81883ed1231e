"""First contact of moving analytic bodies with deforming meshes."""

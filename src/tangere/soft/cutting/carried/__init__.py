"""Solids whose dofs carry finer material that is cut."""

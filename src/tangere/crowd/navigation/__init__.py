"""Where agents go: routes, planning, detours, street maps."""

"""The agents: their state on the device, sorted by cell, what they see and how they go."""

"""How an agent steers: bubbles, reciprocal avoidance."""

"""How an agent steers: bubbles, reciprocal avoidance, walls and edges of bodies."""

"""What encloses a piece of a thing, and the trees of such enclosures."""

"""Ways over a floor: fields to each aim, and who has none."""

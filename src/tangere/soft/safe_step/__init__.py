"""The bound that forbids passing through: moves are shortened until every pair is separated."""

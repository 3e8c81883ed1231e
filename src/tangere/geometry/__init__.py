"""Pure formulas: closest points, triangle pairs, separating axes, exact predicates, intervals."""

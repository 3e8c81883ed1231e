"""When does one pair of features first touch: root isolation, then time bisection, with certificates."""

"""Stage 5: the QUBO H(u, r, z), its constrained form, its decoder, and O'Gorman's formulation beside it."""

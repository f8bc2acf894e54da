"""Local search over orders of the variables, by simulated annealing."""

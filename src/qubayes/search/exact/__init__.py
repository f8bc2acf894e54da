"""Exact search: linear relaxation, cluster cuts, branching."""

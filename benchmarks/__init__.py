"""Measurements: the paper's tables, peers, speed, and what faults do. Not part of the package that is installed."""

"""Search over orders of the variables."""

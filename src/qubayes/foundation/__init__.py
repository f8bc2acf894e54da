"""What every room stands on: errors, files, compiled kernels, random numbers, workers."""

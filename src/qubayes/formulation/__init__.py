"""A stage of the pipeline."""

"""What all packages share. Import names from its modules: this package exports none."""

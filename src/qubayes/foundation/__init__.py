"""Libraries that all rooms use. Each module is one: import names from it, not from this package."""

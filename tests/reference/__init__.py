"""Slow, obvious definitions that import no kernel: what every fast path is compared with."""

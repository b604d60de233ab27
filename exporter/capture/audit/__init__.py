"""What a finished program does not say of itself: randomness, constants, training mode, hooks, dropped checks."""

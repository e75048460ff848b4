"""The service: many runs in one process, one scheduler, the limits of a key shared between them."""

"""What runs in the sandbox: the standard library, `ade.sandbox.layers` and `ade_engine` only."""

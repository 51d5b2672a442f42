"""What runs in the sandbox: standard library, `ade.sandbox.layers` and `ade_engine` only."""

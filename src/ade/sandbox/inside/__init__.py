"""What runs behind the walls: standard library, `ade.sandbox.walls` and `ade_engine` only."""

"""Accept jobs: `submit` runs the steps, one module for each; `model` holds their types."""

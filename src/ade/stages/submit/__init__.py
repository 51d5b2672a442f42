"""Accept jobs: `submit` runs the steps, one module for each; `submission` holds their types."""

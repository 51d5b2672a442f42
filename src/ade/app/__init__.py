"""What every API of ADE shares: the catalogue and the directory as calls."""

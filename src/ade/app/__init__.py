"""What every API of ADE shares: submitting work, the catalogue and the directory."""

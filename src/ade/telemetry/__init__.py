"""Tell operators how ADE is doing: metrics and logs."""

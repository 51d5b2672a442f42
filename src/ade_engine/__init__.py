"""What runs inside the walls; imports nothing of ``ade``."""

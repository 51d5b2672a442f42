"""Installed packages that builds share."""

"""Tell others what happens to jobs: notifications, event streams, event files."""

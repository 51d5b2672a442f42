"""What the server answers, as frozen dataclasses; fields that are not known yet are tolerated."""

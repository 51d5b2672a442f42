"""Lines between the bookings that state a balance without a booking."""


def detect_balance_lines(row):
    words = " ".join(row.texts).lower()
    return 1.0 if words.startswith(("opening balance", "closing balance")) else 0.0

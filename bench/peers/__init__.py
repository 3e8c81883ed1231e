"""Other libraries, each behind the smallest wrapper that asks it our question."""

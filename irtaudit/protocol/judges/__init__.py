"""Judges: each is shown one candidate and says what it is; whatever it says is validated afterwards."""

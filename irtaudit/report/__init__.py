"""Lays out what the audits found as one self-contained page; it knows no audit."""

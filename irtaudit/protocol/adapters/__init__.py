"""Adapters: logs of other tools into bundles, each saying what its source did not say."""

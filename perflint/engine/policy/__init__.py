"""Policies: how much a finding counts at its place. `policies` lists them; other modules answer their questions."""

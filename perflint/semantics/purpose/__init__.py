"""How often code runs, for what purpose, and whether the CPU needs its values."""

"""What the model believes, and why, in words for people."""

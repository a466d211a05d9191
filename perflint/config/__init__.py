"""What the user wants: settings, where they come from, and which rules they choose."""

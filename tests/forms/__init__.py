"""Every example of a rule in other forms: the same meaning, written in another way, must give the same findings."""

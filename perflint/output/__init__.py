"""Writers of findings, one for each format."""

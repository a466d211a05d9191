"""perflint inside other tools."""

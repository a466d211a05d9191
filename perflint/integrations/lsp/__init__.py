"""The language server: findings, fixes and beliefs in editors, about texts that need not be saved."""

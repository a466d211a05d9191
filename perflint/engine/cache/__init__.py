"""Results that outlive the process: findings of files and summaries of callers, kept until what they read changes."""

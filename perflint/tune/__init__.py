"""Makes a program faster: tries changes of its source in its own loop and keeps those that pay."""

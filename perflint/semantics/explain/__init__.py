"""The values of the model and the reasons for them, in words for people."""

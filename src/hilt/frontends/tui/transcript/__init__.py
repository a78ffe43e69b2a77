"""The conversation on screen: what it is made of, and the view that shows the part in sight."""

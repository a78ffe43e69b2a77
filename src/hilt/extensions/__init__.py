"""Extensions at work: programs of their own that add to the agent, and the host that runs and hears them."""

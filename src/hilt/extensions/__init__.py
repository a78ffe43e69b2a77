"""Extensions: programs of their own that add to the agent, and the host that finds, runs and hears them."""

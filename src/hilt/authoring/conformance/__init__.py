"""Whether an extension, or a host, keeps to the protocol: named rules, each with a reason and a remedy."""

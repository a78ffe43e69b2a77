"""Getting an extension onto the user's disk, replacing it and taking it away: whole, pinned, or not at all."""

"""What authors of extensions work with: the other side of the wire, played; extensions tried, compared and measured."""

"""The built-in slash commands, published to the registry like anyone's."""

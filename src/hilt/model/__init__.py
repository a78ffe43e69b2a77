"""The frozen values everybody speaks. No I/O lives here."""

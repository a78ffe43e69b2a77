"""The frames dialect: typed frames on standard input and output."""

"""What is said by method and params: native to the jsonrpc dialect, and carried in frames by the other."""

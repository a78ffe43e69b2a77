"""The jsonrpc dialect: JSON-RPC 2.0 on descriptors 3 and 4, or on standard input and output."""

module hilt-sdk

go 1.22

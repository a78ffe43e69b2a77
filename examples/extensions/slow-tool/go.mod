module slow-tool

go 1.22

require hilt-sdk v0.0.0

replace hilt-sdk => ../../../sdks/go

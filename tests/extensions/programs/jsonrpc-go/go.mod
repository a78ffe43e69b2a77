module example/tally

go 1.21

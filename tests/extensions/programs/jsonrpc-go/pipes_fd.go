//go:build !stdio

package main

import "os"

// Descriptors 3 and 4 are opened by number, without a look whether they are there.
func pipes() (*os.File, *os.File) {
	if os.Getenv("PIGLET_FD") == "1" {
		return os.NewFile(3, "in"), os.NewFile(4, "out")
	}
	return os.Stdin, os.Stdout
}

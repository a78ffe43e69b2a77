//go:build stdio

package main

import "os"

// As programs did before there were descriptors for it.
func pipes() (*os.File, *os.File) {
	return os.Stdin, os.Stdout
}

//go:build !unix

package hilt

import "os"

// standardPipes can only move the names here: programs that are started still have the wire when they are given it.
func standardPipes() (pipes, error) {
	wire := pipes{os.Stdin, os.Stdout}
	os.Stdout = os.Stderr
	nothing, err := os.Open(os.DevNull)
	os.Stdin = nothing
	return wire, err
}

func closeOnExec(int) {}

func isPipe(int) bool { return false }

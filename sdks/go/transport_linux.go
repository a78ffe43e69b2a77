package hilt

import "syscall"

// duplicate uses dup3, since not all of Linux' architectures have dup2.
func duplicate(from, to int) error { return syscall.Dup3(from, to, 0) }

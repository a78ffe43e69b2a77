//go:build unix

package hilt

import (
	"os"
	"syscall"
)

// standardPipes takes stdin and stdout away from everybody else: what is printed from now on, also by programs that are
// started, goes to stderr, and reading stdin gives the end at once.
func standardPipes() (pipes, error) {
	in, err := private(0, "wire in")
	if err != nil {
		return pipes{}, err
	}
	out, err := private(1, "wire out")
	if err != nil {
		return pipes{}, err
	}
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return pipes{}, err
	}
	defer nothing.Close()
	if err := duplicate(int(nothing.Fd()), 0); err != nil {
		return pipes{}, err
	}
	return pipes{in, out}, duplicate(2, 1)
}

func private(descriptor int, name string) (*os.File, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	own, err := syscall.Dup(descriptor)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(own)
	return os.NewFile(uintptr(own), name), nil
}

func closeOnExec(descriptor int) { syscall.CloseOnExec(descriptor) }

// isPipe is false also for descriptors that the runtime opened for itself under this number.
func isPipe(descriptor int) bool {
	var status syscall.Stat_t
	if syscall.Fstat(descriptor, &status) != nil {
		return false
	}
	kind := uint32(status.Mode) & syscall.S_IFMT
	return kind == syscall.S_IFIFO || kind == syscall.S_IFSOCK
}

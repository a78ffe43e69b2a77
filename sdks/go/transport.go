package hilt

// The wire: which pipes it is on, reading lines from it, writing lines to it. What the lines say is not looked at here.

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// maxLine is how long a line may be in all, its end included, in either direction.
const maxLine = 4<<20 - 1

var errLongLine = errors.New("the line is too long")

// TooLong is the error of what does not fit on one line of the wire.
type TooLong struct {
	Bytes int
}

func (e *TooLong) Error() string {
	return fmt.Sprintf("%d bytes are too many for one line, which is shorter than %d; write a file and name it instead", e.Bytes, maxLine+1)
}

// lineReader splits what it reads at '\n' and nowhere else.
type lineReader struct {
	buffered *bufio.Reader
}

func newLineReader(source io.Reader) *lineReader {
	return &lineReader{bufio.NewReaderSize(source, 64<<10)}
}

// next gives a line without its end. A line that is too long is passed over: errLongLine, and the next one can be read.
func (r *lineReader) next() ([]byte, error) {
	var line []byte
	overlong := false
	for {
		piece, err := r.buffered.ReadSlice('\n')
		if overlong = overlong || len(line)+len(piece) > maxLine; !overlong {
			line = append(line, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(piece) == 0 && len(line) == 0 && !overlong:
			return nil, err
		case overlong:
			return nil, errLongLine
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
	}
}

// lineWriter writes whole lines, one at a time, whoever calls it.
type lineWriter struct {
	mu   sync.Mutex
	sink io.Writer
	gone error
}

func (w *lineWriter) write(line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone != nil {
		return w.gone
	}
	if _, err := w.sink.Write(line); err != nil {
		w.gone = fmt.Errorf("the host has gone: %w", err)
		return w.gone
	}
	return nil
}

// pipes are the two ends of the wire.
type pipes struct {
	in  io.Reader
	out io.Writer
}

// descriptorPipes are those of piglet: 3 to read from, 4 to write to. It is false when they are not open.
func descriptorPipes() (pipes, bool) {
	if os.Getenv("PIGLET_FD") != "1" || !isPipe(3) || !isPipe(4) {
		return pipes{}, false
	}
	// What this process starts shall neither hold the wire open nor take it for its own.
	closeOnExec(3)
	closeOnExec(4)
	os.Unsetenv("PIGLET_FD")
	return pipes{os.NewFile(3, "wire in"), os.NewFile(4, "wire out")}, true
}

// isTerminal tells whether somebody sits at this file.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	nothing, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, nothing)
}

//go:build unix

package hilt_test

// Extensions as processes: their pipes, what they print, signals and their end. The test program runs itself as the
// extension, so there is nothing to build.

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	hilt "hilt-sdk"
)

func TestMain(m *testing.M) {
	if os.Getenv("HILT_SDK_TEST_EXTENSION") != "" {
		noisy().Main()
	}
	os.Exit(m.Run())
}

// noisy prints wherever it can, and has a tool that never ends.
func noisy() *hilt.Extension {
	ext := hilt.New("noisy", "1.0.0")
	hilt.Tool(ext, "print", "print a lot", func(*hilt.Call, struct{}) (string, error) {
		fmt.Println("printed by the extension")
		os.Stdout.WriteString("written by the extension\n")
		child := exec.Command("sh", "-c", "echo printed by a child; cat; [ -e /dev/fd/4 ] || echo \"it has no wire$PIGLET_FD.\"")
		child.Stdin, child.Stdout = os.Stdin, os.Stdout
		err := child.Run()
		rest, _ := io.ReadAll(os.Stdin)
		return fmt.Sprintf("%v %q %s", err, rest, ext.HostInfo().Dialect), nil
	})
	hilt.Tool(ext, "hang", "never end", func(call *hilt.Call, _ struct{}) (string, error) {
		call.Progress("hanging")
		select {}
	})
	ext.OnStop(func() error { return ext.Log("stopped") })
	switch os.Getenv("HILT_SDK_TEST_EXTENSION") {
	case "broken":
		ext.Command("a b", "", nil)
	case "stuck":
		ext.OnStop(func() error { select {} })
	}
	return ext
}

type process struct {
	t       *testing.T
	command *exec.Cmd
	in      io.WriteCloser
	lines   *bufio.Reader
	log     strings.Builder
	done    chan error
}

func launch(t *testing.T, environment []string, descriptors bool) *process {
	t.Helper()
	p := &process{t: t, command: exec.Command(os.Args[0]), done: make(chan error, 1)}
	p.command.Env = append(append(os.Environ(), "HILT_SDK_TEST_EXTENSION=1"), environment...)
	p.command.Stderr = &p.log
	toExt, in, _ := os.Pipe()
	out, fromExt, _ := os.Pipe()
	p.command.Stdin, p.command.Stdout = toExt, fromExt
	if descriptors {
		p.command.Stdin, p.command.Stdout = nil, &p.log
		p.command.ExtraFiles = []*os.File{toExt, fromExt}
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	toExt.Close()
	fromExt.Close()
	p.in, p.lines = in, bufio.NewReader(out)
	go func() { p.done <- p.command.Wait() }()
	t.Cleanup(func() { p.command.Process.Kill() })
	return p
}

func (p *process) say(line string) {
	io.WriteString(p.in, line+"\n")
}

// hear reads lines up to one that has a text in it.
func (p *process) hear(text string) obj {
	p.t.Helper()
	timer := time.AfterFunc(10*time.Second, func() { p.command.Process.Kill() })
	defer timer.Stop()
	for {
		line, err := p.lines.ReadString('\n')
		if err != nil {
			p.t.Fatalf("it never said %s\n%s", text, p.log.String())
		}
		var said obj
		if err := json.Unmarshal([]byte(line), &said); err != nil {
			p.t.Fatalf("this is on the wire: %s", line)
		}
		if strings.Contains(line, text) {
			return said
		}
	}
}

// ends waits for the end, and gives the exit code.
func (p *process) ends() int {
	p.t.Helper()
	select {
	case err := <-p.done:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		return 0
	case <-time.After(5 * time.Second):
		p.t.Fatal("it did not end")
	}
	return -1
}

const ack = `{"type":"hello_ack","protocol_version":1,"host":"hilt","host_version":"0.1.0","capabilities":["tool_progress"]}`
const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"5","cwd":"/w"}}`

func TestWhatIsPrintedNeverReachesTheWire(t *testing.T) {
	call := `{"jsonrpc":"2.0","id":2,"method":"tool/execute","params":{"callId":"c","name":"print","args":{}}}`
	cases := map[string]struct {
		environment []string
		descriptors bool
		greeting    string
		call        string
		want        string
	}{
		"frames":  {nil, false, ack, `{"type":"tool_call","id":"c","name":"print","args":{}}`, `"frames"`},
		"stdio":   {[]string{"HILT_SDK_DIALECT=jsonrpc"}, false, initialize, call, `"jsonrpc"`},
		"piglet":  {[]string{"PIGLET_FD=1"}, true, initialize, call, `"jsonrpc"`},
		"no pipe": {[]string{"PIGLET_FD=1"}, false, ack, `{"type":"tool_call","id":"c","name":"print","args":{}}`, `"frames"`},
	}
	for name, one := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, one.environment, one.descriptors)
			p.say(one.greeting)
			p.say(one.call)
			want := `<nil> \"\" ` + strings.Trim(one.want, `"`)
			p.hear(want)
			p.in.Close()
			if code := p.ends(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			for _, words := range []string{"printed by the extension", "written by the extension", "printed by a child", "it has no wire", "stopped"} {
				if name == "piglet" && words == "it has no wire" {
					words += "." // and is not told that it had one
				}
				if log := p.log.String(); !strings.Contains(log, words) {
					t.Errorf("the log has no %q: %s", words, log)
				}
			}
		})
	}
}

func TestTheEndComesAlsoWhileAToolHangs(t *testing.T) {
	for name, end := range map[string]func(*process){
		"shutdown": func(p *process) {
			p.say(`{"type":"shutdown"}`)
			p.hear("shutdown_ack")
		},
		"end of input": func(p *process) { p.in.Close() },
		"SIGTERM": func(p *process) {
			p.command.Process.Signal(syscall.SIGINT) // the host's Ctrl-C, which is none of its business
			p.say(`{"type":"tool_call","id":"d","name":"print","args":{}}`)
			p.hear(`"id":"d"`)
			p.command.Process.Signal(syscall.SIGTERM)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, []string{"HILT_SDK_TEST_EXTENSION=stuck"}, false)
			p.say(ack)
			p.say(`{"type":"tool_call","id":"c","name":"hang","args":{}}`)
			p.hear("hanging")
			begun := time.Now()
			end(p)
			if code := p.ends(); code != 0 || time.Since(begun) > 4*time.Second {
				t.Errorf("exit code %d after %v", code, time.Since(begun))
			}
			if log := p.log.String(); !strings.Contains(log, "stopped\n") {
				t.Errorf("it did not stop in order: %s", log)
			}
		})
	}
}

func TestAnExtensionThatCannotRunSaysWhy(t *testing.T) {
	t.Parallel()
	broken := launch(t, []string{"HILT_SDK_TEST_EXTENSION=broken"}, false)
	if code := broken.ends(); code != 1 || !strings.Contains(broken.log.String(), `command "a b": a name is`) {
		t.Errorf("exit code %d: %s", code, broken.log.String())
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there are no terminals")
	}
	defer terminal.Close()
	byHand := exec.Command(os.Args[0])
	byHand.Env = append(os.Environ(), "HILT_SDK_TEST_EXTENSION=1")
	byHand.Stdin = terminal
	said, err := byHand.CombinedOutput()
	if byHand.ProcessState.ExitCode() != 2 || !strings.Contains(string(said), "hilt --ext") {
		t.Errorf("%v: %s", err, said)
	}
}

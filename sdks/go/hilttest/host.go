// Package hilttest plays a host in memory, for tests of extensions: hilt, zot or piglet, over the real lines of either
// dialect, without a process.
//
//	host := hilttest.New(t, ext)
//	if got := host.Call("weather", map[string]any{"city": "Rome"}); got.Text != "Rome: sunny" {
//		t.Error(got.Text)
//	}
//
// What an extension says is read as a host would read it. Every wait is bounded, and one that is in vain fails the test.
package hilttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	hilt "hilt-sdk"
	"hilt-sdk/internal/quiet"
)

// patience is how long any one thing may take.
const patience = 5 * time.Second

// Options say which host is played, and where.
type Options struct {
	// Host is "hilt", the default, "zot" or "piglet".
	Host string
	// Dialect is the one that host speaks, unless another is given.
	Dialect hilt.Dialect
	// Capabilities are those that the host announces, in place of its own.
	Capabilities []string
	// Cwd is where the agent would work, DataDir where the extension keeps data; without them they are the working directory
	// and one of the test's own.
	Cwd     string
	DataDir string
	// Answers are what services answer from the beginning, see [Host.Answer].
	Answers map[string]any
}

var announced = map[string]map[hilt.Dialect][]string{
	"hilt": {
		hilt.Frames: {"call_tool", "host_request", "host_notify", "ext_request", "register", "tool_progress", "tool_cancel"},
		hilt.JSONRPC: {
			"panel/open", "panel/render", "panel/close", "tool/progress", "interceptor/event", "interceptor/content",
			"register/late", "register/models", "host/unsubscribe", "setStatus",
		},
	},
	"zot": {}, "piglet": {},
}

// Note is a note for the user.
type Note struct {
	Level string
	Text  string
}

// Panel is a panel as the host would show it now.
type Panel struct {
	host   *Host
	id     string
	title  string
	lines  []string
	footer string
	open   bool
}

// ID is what the extension calls it.
func (p *Panel) ID() string { return p.id }

// Title is its title.
func (p *Panel) Title() string { return lockedValue(p.host, &p.title) }

// Lines are what it shows.
func (p *Panel) Lines() []string { return locked(p.host, &p.lines) }

// Text is what it shows, as one text.
func (p *Panel) Text() string { return strings.Join(p.Lines(), "\n") }

// Footer is what stands below.
func (p *Panel) Footer() string { return lockedValue(p.host, &p.footer) }

// IsOpen tells whether neither side has closed it.
func (p *Panel) IsOpen() bool { return lockedValue(p.host, &p.open) }

// Host is the other end of an extension.
type Host struct {
	t       testing.TB
	options Options
	framed  bool
	toExt   *io.PipeWriter
	exit    chan error
	log     buffer

	mu      sync.Mutex
	changed *sync.Cond
	count   int
	// said is everything the extension said, in order.
	said       []map[string]any
	answers    map[string]any
	results    map[string]map[string]any
	notes      []Note
	shown      []string
	inserted   []string
	submitted  []string
	progress   map[string][]string
	panels     []*Panel
	registered map[string][]map[string]any
	topics     map[int]string
	pieces     []map[string]any
	over       bool
	ext        *hilt.Extension
}

// New runs the extension against a host, and waits until it is ready. It is ended with the test.
func New(t testing.TB, ext *hilt.Extension, options ...Options) *Host {
	t.Helper()
	h := start(t, ext, options...)
	if err := h.ready(); err != nil {
		t.Fatal(err)
	}
	return h
}

// Refused runs an extension that does not start in this host, and gives what it said about it.
func Refused(t testing.TB, ext *hilt.Extension, options ...Options) error {
	t.Helper()
	h := start(t, ext, options...)
	if err := h.ready(); err == nil {
		t.Fatal("it started")
	}
	select {
	case err := <-h.exit:
		h.exit <- err
		return err
	case <-time.After(patience):
		t.Fatal("it did not end")
	}
	return nil
}

func start(t testing.TB, ext *hilt.Extension, options ...Options) *Host {
	t.Helper()
	chosen := Options{}
	if len(options) > 0 {
		chosen = options[0]
	}
	if chosen.Host == "" {
		chosen.Host = "hilt"
	}
	if chosen.Dialect == "" {
		chosen.Dialect = hilt.Frames
		if chosen.Host == "piglet" {
			chosen.Dialect = hilt.JSONRPC
		}
	}
	if chosen.Capabilities == nil {
		chosen.Capabilities = announced[chosen.Host][chosen.Dialect]
	}
	if chosen.Cwd == "" {
		chosen.Cwd, _ = os.Getwd() // a test without a place says so elsewhere
	}
	if chosen.DataDir == "" {
		chosen.DataDir = t.TempDir()
	}
	fromHost, toExt := io.Pipe()
	fromExt, toHost := io.Pipe()
	h := &Host{
		t: t, options: chosen, framed: chosen.Dialect == hilt.Frames, toExt: toExt, exit: make(chan error, 1), ext: ext,
		answers: map[string]any{}, results: map[string]map[string]any{}, progress: map[string][]string{},
		registered: map[string][]map[string]any{}, topics: map[int]string{},
	}
	h.changed = sync.NewCond(&h.mu)
	for method, answer := range chosen.Answers {
		h.answers[method] = answer
	}
	ext.LogTo(&h.log)
	go h.read(fromExt)
	go func() {
		err := ext.Serve(fromHost, toHost, chosen.Dialect)
		toHost.Close()
		fromHost.Close()
		h.exit <- err
	}()
	t.Cleanup(h.Close)
	return h
}

func (h *Host) ready() error {
	if h.framed {
		ack := map[string]any{
			"type": "hello_ack", "protocol_version": 1, "capabilities": h.options.Capabilities, "zot_version": "0.1.62",
			"provider": "demo", "model": "demo", "cwd": h.options.Cwd, "data_dir": h.options.DataDir,
		}
		if h.options.Host == "hilt" {
			ack["host"], ack["host_version"] = "hilt", "0.1.0"
		}
		if err := h.await("hello", func() bool { return len(h.said) > 0 }); err != nil {
			return err
		}
		h.send(ack)
		return h.await("ready", func() bool {
			return slices.ContainsFunc(h.said, func(one map[string]any) bool { return one["type"] == "ready" })
		})
	}
	params := map[string]any{"protocolVersion": "5", "cwd": h.options.Cwd, "configDir": h.options.DataDir}
	if h.options.Host == "hilt" {
		params["host"], params["hostVersion"], params["capabilities"] = "hilt", "0.1.0", h.options.Capabilities
	}
	answer, err := h.ask(map[string]any{"method": "initialize", "params": params})
	if err == nil && answer["error"] != nil {
		return errors.New(text(answer["error"].(map[string]any), "message"))
	}
	return err
}

// Close ends the extension, and waits until it has ended.
func (h *Host) Close() {
	h.mu.Lock()
	ended := h.over
	h.over = true
	h.mu.Unlock()
	if ended {
		return
	}
	if h.framed {
		h.send(map[string]any{"type": "shutdown"})
	} else {
		h.send(map[string]any{"jsonrpc": "2.0", "method": "shutdown"})
	}
	h.toExt.Close()
	select {
	case <-h.exit:
	case <-time.After(patience):
		h.t.Errorf("the extension did not end")
	}
}

// Answer says what a service of the host answers: a value, an error (such as a *hilt.HostError), or a function of the
// params, func(map[string]any) (any, error). Tools that the extension calls are those of "host/executeTool".
func (h *Host) Answer(method string, answer any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers[method] = answer
}

// Notes are those that the extension left and has not taken away.
func (h *Host) Notes() []Note { return locked(h, &h.notes) }

// Shown is what it showed to the user that is no note.
func (h *Host) Shown() []string { return locked(h, &h.shown) }

// Submitted is what it sent to the model by itself.
func (h *Host) Submitted() []string { return locked(h, &h.submitted) }

// Said is everything that it said, each line parsed.
func (h *Host) Said() []map[string]any { return locked(h, &h.said) }

// Pieces are those of answers of its provider.
func (h *Host) Pieces() []map[string]any { return locked(h, &h.pieces) }

// Missing is what it uses and the host does not offer, in words.
func (h *Host) Missing() []string { return h.ext.Missing() }

// Log is what it wrote to its log.
func (h *Host) Log() string { return h.log.String() }

// Registered is what it registered: "tool", "command", "shortcut" and so on, each as it was said.
func (h *Host) Registered(kind string) []map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.registered[kind])
}

// Panels are those that are open.
func (h *Host) Panels() []*Panel { return locked(h, &h.panels) }

// Await waits until something holds, which is looked at after everything that the extension says.
func (h *Host) Await(what string, holds func() bool) {
	h.t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			h.t.Fatalf("in vain: %s\n%s", what, h.Log())
		}
		h.mu.Lock()
		h.doze(20 * time.Millisecond)
		h.mu.Unlock()
	}
}

func locked[T any](h *Host, list *[]T) []T {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(*list)
}

func lockedValue[T any](h *Host, value *T) T {
	h.mu.Lock()
	defer h.mu.Unlock()
	return *value
}

// settle waits until the extension has dealt with all that it was told, and all that it said of it was heard.
func (h *Host) settle() {
	h.t.Helper()
	h.reach()
	if !quiet.Wait(h.ext, patience) {
		h.t.Fatalf("a handler does not return\n%s", h.Log())
	}
	h.reach()
}

// reach asks what nobody answers but with an error, at once: lines come and go in order, so all before it were read.
func (h *Host) reach() {
	h.t.Helper()
	question := map[string]any{"method": unasked, "params": map[string]any{}}
	if h.framed {
		question["type"] = "ext_request"
	}
	if _, err := h.ask(question); err != nil {
		h.t.Fatal(err)
	}
}

const unasked = "hilttest/reach"

// await is Await for what is looked at under the lock.
func (h *Host) await(what string, holds func() bool) error {
	deadline := time.Now().Add(patience)
	h.mu.Lock()
	defer h.mu.Unlock()
	for !holds() {
		select {
		case err := <-h.exit:
			h.exit <- err
			return fmt.Errorf("the extension ended: %v\n%s", err, h.log.String())
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("in vain: %s\n%s", what, h.log.String())
		}
		h.doze(20 * time.Millisecond)
	}
	return nil
}

// doze waits for the next thing that is said, or a little.
func (h *Host) doze(little time.Duration) {
	timer := time.AfterFunc(little, h.changed.Broadcast)
	h.changed.Wait()
	timer.Stop()
}

// buffer is a log that may be read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (h *Host) send(line map[string]any) {
	encoded, err := json.Marshal(line)
	if err != nil {
		h.t.Errorf("this cannot be said: %v", err)
		return
	}
	// An extension that has ended reads no more.
	_, _ = h.toExt.Write(append(encoded, '\n'))
}

// ask asks the extension and waits for its answer.
func (h *Host) ask(question map[string]any) (map[string]any, error) {
	id, key := h.number()
	question["id"] = id
	if !h.framed {
		question["jsonrpc"] = "2.0"
	}
	h.send(question)
	return h.answered(key, fmt.Sprint(question["type"], question["method"]))
}

func (h *Host) number() (any, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	if h.framed {
		return fmt.Sprintf("t%d", h.count), fmt.Sprintf("t%d", h.count)
	}
	return h.count, fmt.Sprint(h.count)
}

func (h *Host) answered(key, what string) (map[string]any, error) {
	err := h.await("an answer to "+what, func() bool { return h.results[key] != nil })
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.results[key], err
}

// Line says something as it stands, for tests of what hosts say wrong.
func (h *Host) Line(line string) {
	_, _ = h.toExt.Write([]byte(line + "\n")) // an extension that has ended reads no more
}

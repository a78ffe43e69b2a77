// Package hilt is for writing extensions of hilt, zot and piglet: tools for the model, slash commands, guards, panels and
// more, in one program that runs in all three.
//
//	ext := hilt.New("weather", "0.1.0")
//	hilt.Tool(ext, "weather", "Get the weather for a city.", func(call *hilt.Call, args struct {
//		City string `json:"city" help:"the city"`
//	}) (string, error) {
//		return args.City + ": sunny", nil
//	})
//	ext.Main()
//
// Handlers run side by side, each on a goroutine of its own. An error of a handler is what whoever asked is told, and so is
// a panic, whose stack is in the log. What is printed goes to the log as well: the wire belongs to this package alone.
package hilt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Extension is what is registered, and the host it is registered with while it runs.
type Extension struct {
	name    string
	version string
	host    Host

	mu       sync.Mutex
	log      io.Writer
	problems []error
	conn     *connection

	offered      []registration
	used         []usage
	tools        map[string]tool
	commands     map[string]func(*Call, string) (Action, error)
	shortcuts    map[string]func(*Call) (Action, error)
	listeners    []listener
	interceptors []*interceptor
	hooks        []hook
	compact      func(context.Context, []Message) ([]Message, error)
	providers    map[string]provide
	onReady      []func() error
	onStop       []func() error
}

// New is an extension of that name. Hosts go by the name in its manifest, which should be the same.
func New(name, version string) *Extension {
	e := &Extension{
		name: name, version: version, log: os.Stderr, tools: map[string]tool{},
		commands: map[string]func(*Call, string) (Action, error){}, shortcuts: map[string]func(*Call) (Action, error){},
		providers: map[string]provide{},
	}
	e.host.ext = e
	if strings.TrimSpace(name) == "" {
		_ = e.problem("an extension has a name") // Run says so
	}
	return e
}

// Name is what it is called.
func (e *Extension) Name() string { return e.name }

// Version is its own.
func (e *Extension) Version() string { return e.version }

// Host has what can be asked of the host.
func (e *Extension) Host() *Host { return &e.host }

// HostInfo says which host it is. Like the rest of what the host says of itself, it is empty until it has greeted.
func (e *Extension) HostInfo() HostInfo { return e.known().host }

// Cwd is where the agent works.
func (e *Extension) Cwd() string { return e.known().cwd }

// DataDir is where the extension may keep data. It exists.
func (e *Extension) DataDir() string { return e.known().madeDataDir() }

// ExtensionDir is where its own files are, which is where every host starts it.
func (e *Extension) ExtensionDir() string { return e.known().extensionDir }

func (e *Extension) known() greeted {
	e.mu.Lock()
	c := e.conn
	e.mu.Unlock()
	if c == nil || !isClosed(c.known) {
		return greeted{}
	}
	return c.greeted
}

// Uses declares features that handlers use, by their names in the table of features, so that a host that lacks them is told
// of at the beginning.
func (e *Extension) Uses(names ...string) error { return e.declare(names, false) }

// Require declares features that the extension cannot do without: in a host that lacks one it refuses to start.
func (e *Extension) Require(names ...string) error { return e.declare(names, true) }

func (e *Extension) declare(names []string, required bool) error {
	for _, name := range names {
		if _, there := features()[name]; !there {
			return e.problem("there is no feature %q", name)
		}
		e.mu.Lock()
		e.used = append(e.used, usage{name, "", required})
		e.mu.Unlock()
	}
	return nil
}

func (e *Extension) use(feature, what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if one := (usage{feature, what, false}); !slices.Contains(e.used, one) {
		e.used = append(e.used, one)
	}
}

// Offers tells whether the present host has a feature.
func (e *Extension) Offers(feature string) bool {
	e.mu.Lock()
	c := e.conn
	e.mu.Unlock()
	return c != nil && c.offers(feature)
}

// Missing says what the extension uses and the present host does not offer, in words.
func (e *Extension) Missing() []string {
	e.mu.Lock()
	c := e.conn
	e.mu.Unlock()
	if c == nil || !isClosed(c.known) {
		return nil
	}
	return lackingEach(c.missing())
}

// OnReady has something done once the host is known and everything is registered.
func (e *Extension) OnReady(do func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.onReady = append(e.onReady, do)
}

// OnStop has something done at the end, which may take a second.
func (e *Extension) OnStop(do func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.onStop = append(e.onStop, do)
}

// LogTo has the log written elsewhere than to stderr.
func (e *Extension) LogTo(log io.Writer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.log = log
}

func (e *Extension) logf(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	fmt.Fprintf(e.log, e.name+": "+format+"\n", args...)
}

// logLine writes what the author has to say, as it is.
func (e *Extension) logLine(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	fmt.Fprintln(e.log, text)
}

func (e *Extension) problem(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn == nil {
		e.problems = append(e.problems, err)
	}
	return err
}

func (e *Extension) addTool(name string, added tool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tools[name] = added
}

func (e *Extension) tool(name string) (tool, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found, there := e.tools[name]
	return found, there
}

// register keeps a registration for the host, or tells it at once when the extension runs.
func (e *Extension) register(feature, what string, one registration) error {
	e.use(feature, what)
	e.mu.Lock()
	e.offered = append(e.offered, one)
	e.mu.Unlock()
	return e.late(feature, func(*connection) []registration { return []registration{one} })
}

// late tells the host of what was registered after the beginning. Before it, the handshake does.
func (e *Extension) late(feature string, registrations func(*connection) []registration) error {
	e.mu.Lock()
	running := e.conn != nil
	e.mu.Unlock()
	if !running {
		return nil
	}
	c, err := e.connected()
	if err != nil {
		return err
	}
	for _, needed := range []string{feature, "late_registration"} {
		if !c.offers(needed) {
			return &NotOffered{needed, c.greeted.host}
		}
	}
	return c.sendAll(registrations(c))
}

func (e *Extension) intercept(event string, options []HandlerOption, decide decider) error {
	given := chosen(options)
	named := given.name != "" || given.ordered
	if given.name == "" {
		given.name = e.name
	}
	e.use("intercept."+event, "")
	if given.ordered {
		e.use("priorities", "")
	}
	if given.required {
		_ = e.Require("intercept." + event) // it is in the table
	}
	e.mu.Lock()
	at := slices.IndexFunc(e.interceptors, func(one *interceptor) bool { return one.name == given.name })
	if at < 0 {
		at = len(e.interceptors)
		e.interceptors = append(e.interceptors, &interceptor{name: given.name, deciders: map[string][]decider{}})
	}
	one := e.interceptors[at]
	one.named = one.named || named
	if given.ordered {
		one.priority = given.priority
	}
	one.deciders[event] = append(one.deciders[event], decide)
	one.order = unique(append(one.order, event))
	e.mu.Unlock()
	return e.late("intercept."+event, func(c *connection) []registration {
		all := c.interceptorRegistrations(one)
		if c.dialect.name() == Frames && !one.named {
			all = append(all, registration{"subscribe", obj{"intercept": one.subscribed()}})
		}
		return all
	})
}

// connected is the host, once everything is registered with it.
func (e *Extension) connected() (*connection, error) {
	e.mu.Lock()
	c := e.conn
	e.mu.Unlock()
	if c == nil {
		return nil, ErrNotRunning
	}
	select {
	case <-c.ready:
	case <-c.over:
		if !c.isReady() { // what is said while it ends is still heard, or dropped
			return nil, ErrNotRunning
		}
	}
	return c, nil
}

const byHand = `%s %s is an extension: a program that a coding agent starts and talks to. To try it:
  hilt --ext %s             start the agent with it
  hilt ext call %s TOOL '{}'   call one of its tools`

// errTerminal is the end of an extension that was started by hand.
var errTerminal = errors.New("this is an extension, for a host to run")

// Main runs the extension and ends the process: with 0 at the end, 1 when something is wrong with it, 2 when it was started
// in a terminal.
func (e *Extension) Main() {
	err := e.Run()
	switch {
	case err == nil:
		os.Exit(0)
	case errors.Is(err, errTerminal):
		os.Exit(2)
	}
	e.logf("%v", err)
	os.Exit(1)
}

// Run talks with the host until it ends, in the dialect that the environment asks for, or in the given one.
func (e *Extension) Run(asked ...Dialect) error {
	if err := errors.Join(e.problems...); err != nil {
		return err
	}
	chosen := Dialect(os.Getenv("HILT_SDK_DIALECT"))
	if len(asked) > 0 && asked[0] != "" {
		chosen = asked[0]
	}
	if chosen != "" && chosen != Frames && chosen != JSONRPC {
		return fmt.Errorf("there is no dialect %q: it is frames or jsonrpc", chosen)
	}
	if chosen != Frames {
		if wire, there := descriptorPipes(); there {
			return e.serve(wire, JSONRPC, true)
		}
	}
	if isTerminal(os.Stdin) {
		program := os.Args[0]
		e.logLine(fmt.Sprintf(byHand, e.name, e.version, program, program))
		return errTerminal
	}
	wire, err := standardPipes()
	if err != nil {
		return fmt.Errorf("standard input and output cannot be used: %w", err)
	}
	return e.serve(wire, chosen, true)
}

// Serve is Run over other pipes than those of the process: for tests, and hosts in the same program.
func (e *Extension) Serve(in io.Reader, out io.Writer, dialect Dialect) error {
	if err := errors.Join(e.problems...); err != nil {
		return err
	}
	return e.serve(pipes{in, out}, dialect, false)
}

func (e *Extension) serve(wire pipes, chosen Dialect, signals bool) error {
	var d dialect = frames{}
	if chosen == JSONRPC {
		d = jsonrpc{}
	}
	c := newConnection(e, d, wire.out)
	e.mu.Lock()
	if e.conn != nil {
		e.mu.Unlock()
		return errors.New("the extension runs already")
	}
	e.conn = c
	e.mu.Unlock()
	if signals {
		defer c.heedSignals()()
	}
	if err := c.begin(); err != nil {
		c.end()
	}
	go c.read(wire.in)
	<-c.over
	c.finish()
	e.mu.Lock()
	e.conn = nil
	e.mu.Unlock()
	return c.refused
}

// heedSignals ends it when asked to. An interrupt is meant for the host, and so is a broken pipe: both are let pass, but not
// ignored, since programs that are started would inherit that.
func (c *connection) heedSignals() (stop func()) {
	wanted := make(chan os.Signal, 1)
	passed := make(chan os.Signal, 1)
	signal.Notify(wanted, syscall.SIGTERM)
	signal.Notify(passed, os.Interrupt, syscall.SIGPIPE)
	go func() {
		for {
			select {
			case <-wanted:
				c.end()
			case <-passed:
			case <-c.over:
				return
			}
		}
	}()
	return func() {
		signal.Stop(wanted)
		signal.Stop(passed)
	}
}

// guarded runs a handler. A panic is an error for whoever asked, and its stack is in the log.
func guarded[T any](e *Extension, what string, run func() (T, error)) (value T, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v", fault)
			e.logf("%s: %v\n%s", what, err, debug.Stack())
		}
	}()
	return run()
}

func guardedErr(e *Extension, what string, run func() error) error {
	_, err := guarded(e, what, func() (struct{}, error) { return struct{}{}, run() })
	return err
}

// unmarshalNumbers reads JSON with numbers as they are written, so that none loses digits on its way.
func unmarshalNumbers(data []byte, into any) error {
	if len(data) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode(into)
}

package hilt

// One conversation with a host, from its greeting to its end: who is asked, who answers, and who waits for an answer.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// atOnce is how many questions are dealt with at the same time; more wait. Interceptors never do.
const atOnce = 256

// grace is what handlers have left when it is over.
const grace = time.Second

// ErrNotRunning is the error of talking to a host before [Extension.Run], or after it.
var ErrNotRunning = errors.New("there is no host: the extension does not run")

// asking is a question of the host's that is being dealt with.
type asking struct {
	incoming
	ctx context.Context
}

// waiter is somebody who asked the host.
type waiter struct {
	answered chan incoming
	// first is done with the result before the next line is read.
	first func(result json.RawMessage)
}

type connection struct {
	ext     *Extension
	dialect dialect
	wire    *lineWriter
	ctx     context.Context
	cancel  context.CancelFunc
	greeted greeted
	// known is closed when the host has greeted, ready when everything is registered, over at the end.
	known  chan struct{}
	ready  chan struct{}
	over   chan struct{}
	ending sync.Once
	// refused is why the extension does not run in this host.
	refused error

	mu        sync.Mutex
	asked     int
	waiting   map[string]waiter
	underWay  map[string]context.CancelFunc
	listening map[int]*subscription
	grumbled  map[string]bool

	// queued is what waits or is at work in lanes, work what is done for the host.
	queued *crew
	work   *crew

	places chan struct{}
	events lane
	step   int
	panels panels
}

func newConnection(e *Extension, d dialect, out io.Writer) *connection {
	c := &connection{
		ext: e, dialect: d, wire: &lineWriter{sink: out},
		known: make(chan struct{}), ready: make(chan struct{}), over: make(chan struct{}),
		waiting: map[string]waiter{}, underWay: map[string]context.CancelFunc{}, listening: map[int]*subscription{},
		grumbled: map[string]bool{}, places: make(chan struct{}, atOnce), queued: newCrew(), work: newCrew(),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.panels = panels{conn: c, shown: map[string]*shownPanel{}}
	return c
}

// read hears the host until it falls silent.
func (c *connection) read(in io.Reader) {
	lines := newLineReader(in)
	for {
		line, err := lines.next()
		switch {
		case errors.Is(err, errLongLine):
			c.grumble("long", "a line of the host is too long, and was left out")
			continue
		case err != nil:
			c.end()
			return
		case len(strings.TrimSpace(string(line))) == 0:
			continue
		}
		heard, err := c.dialect.read(line)
		if err != nil {
			c.grumble("json", "a line of the host is no JSON, and was left out")
			continue
		}
		if c.hear(heard); c.isOver() {
			return
		}
	}
}

func (c *connection) hear(in incoming) {
	switch in.kind {
	case greeting:
		c.greet(in)
	case question:
		c.take(in)
	case notice:
		c.heed(in)
	case response:
		c.mu.Lock()
		waiting, there := c.waiting[strings.Trim(in.id, `"`)]
		delete(c.waiting, strings.Trim(in.id, `"`))
		c.mu.Unlock()
		if there && waiting.first != nil && in.fault == nil {
			waiting.first(in.result)
		}
		if there {
			waiting.answered <- in
		}
	}
}

func (c *connection) heed(in incoming) {
	switch in.method {
	case "shutdown":
		if c.dialect.name() == Frames {
			_ = c.send(obj{"type": "shutdown_ack"}) // a host that has gone needs none
		}
		c.end()
	case "$/cancelRequest":
		var params struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(in.params, &params) == nil {
			c.mu.Lock()
			if cancel, there := c.underWay[string(params.ID)]; there {
				cancel()
			}
			c.mu.Unlock()
		}
	case "event":
		c.heardEvent(in.params)
	case "panel/key", "panel/resize", "panel/closed":
		c.panels.heard(in.method, in.params)
	case "eventBus/event":
		c.published(in.params)
	}
}

// answering are the questions that an extension may be asked.
var answering = map[string]func(*connection, *asking) (any, *HostError){
	"tool/execute":               (*connection).runTool,
	"command/execute":            (*connection).runCommand,
	"shortcut/handle":            (*connection).runShortcut,
	"event_intercept":            (*connection).askedFrame,
	"interceptor/before":         (*connection).askedBefore,
	"interceptor/after":          (*connection).askedAfter,
	"interceptor/event":          (*connection).askedEvent,
	"event/dispatch":             (*connection).dispatched,
	"messageHook/onMessage":      (*connection).hookMessage,
	"inputTransformer/transform": (*connection).transformInput,
	"compact/execute":            (*connection).compactMessages,
	"provider/stream":            (*connection).stream,
}

// take sees to it that a question is answered, once, whatever happens.
func (c *connection) take(in incoming) {
	if in.method == "shutdown" {
		c.answer(in, nil, nil)
		c.end()
		return
	}
	handle, there := answering[in.method]
	if !there {
		c.answer(in, nil, &HostError{codeUnknownMethod, "method not found: " + in.method})
		return
	}
	if len(in.params) == 0 || string(in.params) == "null" {
		in.params = json.RawMessage("{}")
	}
	if in.params[0] != '{' {
		c.answer(in, nil, &HostError{codeBadParams, in.method + ": params must be an object"})
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	c.mu.Lock()
	c.underWay[in.id] = cancel // here, so that taking it back cannot come before it
	c.mu.Unlock()
	finish := func() {
		value, fault := handle(c, &asking{in, ctx})
		c.mu.Lock()
		delete(c.underWay, in.id)
		c.mu.Unlock()
		cancel()
		c.answer(in, value, fault)
	}
	if in.method == "event/dispatch" {
		c.events.do(c, finish)
		return
	}
	c.work.change(1)
	go func() {
		defer c.work.change(-1)
		if !isVerdict(in.method) {
			c.places <- struct{}{}
			defer func() { <-c.places }()
		}
		finish()
	}()
}

func isVerdict(method string) bool {
	return method == "event_intercept" || strings.HasPrefix(method, "interceptor/")
}

// answer says what came out of a question. What cannot be written becomes an error that says why.
func (c *connection) answer(in incoming, value any, fault *HostError) {
	err := c.sendAll(c.dialect.answer(in, value, fault))
	var gone *wireError
	if err == nil || errors.As(err, &gone) {
		return
	}
	c.ext.logf("%s: %v", in.method, err)
	if _, isResult := value.(Result); isResult {
		err = c.sendAll(c.dialect.answer(in, failure(err), nil))
	} else {
		err = c.sendAll(c.dialect.answer(in, nil, &HostError{codeFailed, err.Error()}))
	}
	if err != nil {
		c.ext.logf("%s: %v", in.method, err)
	}
}

// wireError is what happened to the pipe itself.
type wireError struct{ error }

func (c *connection) send(line obj) error { return c.sendAll([]obj{line}) }

// sendAll writes all of it, or nothing when one of them cannot be written.
func (c *connection) sendAll(lines any) error {
	var all []obj
	switch held := lines.(type) {
	case []obj:
		all = held
	case []registration:
		for _, one := range held {
			all = append(all, c.dialect.register(one))
		}
	}
	whole := []byte{}
	for _, one := range all {
		line, err := encode(one)
		if err != nil {
			return err
		}
		whole = append(whole, line...)
	}
	if len(whole) == 0 {
		return nil
	}
	if err := c.wire.write(whole); err != nil {
		return &wireError{err}
	}
	return nil
}

func (c *connection) tell(method string, params obj) error {
	return c.send(c.dialect.tell(method, params))
}

// ask asks the host and waits for its answer, or for the context.
func (c *connection) ask(ctx context.Context, method string, params obj, first func(json.RawMessage)) (json.RawMessage, error) {
	if params == nil {
		params = obj{}
	}
	answered := make(chan incoming, 1)
	c.mu.Lock()
	c.asked++
	id := c.asked
	key := fmt.Sprint(id)
	if c.dialect.name() == Frames {
		key = asked(id)
	}
	c.waiting[key] = waiter{answered, first}
	c.mu.Unlock()
	forget := func() {
		c.mu.Lock()
		delete(c.waiting, key)
		c.mu.Unlock()
	}
	if err := c.send(c.dialect.ask(id, method, params)); err != nil {
		forget()
		return nil, err
	}
	select {
	case in := <-answered:
		if in.fault != nil {
			return nil, in.fault
		}
		return in.result, nil
	case <-ctx.Done():
		forget()
		_ = c.send(c.dialect.takeBack(id, method)) // what a host that has gone cannot be told
		return nil, ctx.Err()
	case <-c.over:
		forget()
		return nil, ErrNotRunning
	}
}

func (c *connection) isReady() bool { return isClosed(c.ready) }

func (c *connection) isOver() bool { return isClosed(c.over) }

func isClosed(channel chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// end begins the end: nobody needs an answer any more.
func (c *connection) end() {
	c.ending.Do(func() {
		close(c.over)
		c.cancel()
	})
}

// finish gives handlers a moment, once it is over.
func (c *connection) finish() {
	c.ext.mu.Lock()
	last := slices.Clone(c.ext.onStop)
	c.ext.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, one := range last {
			if err := guardedErr(c.ext, "on stop", one); err != nil {
				c.ext.logf("on stop: %v", err)
			}
		}
		c.work.gone(grace)
	}()
	select {
	case <-done:
	case <-time.After(grace):
	}
}

// grumble writes to the log, once for each kind of complaint.
func (c *connection) grumble(about, text string) {
	c.mu.Lock()
	already := c.grumbled[about]
	c.grumbled[about] = true
	c.mu.Unlock()
	if !already {
		c.ext.logf("%s", text)
	}
}

func badParams(err error) *HostError {
	return &HostError{codeBadParams, fmt.Sprintf("the params cannot be used: %v", err)}
}

// madeDataDir is made if the host only named it.
func (g greeted) madeDataDir() string {
	if g.dataDir != "" {
		_ = os.MkdirAll(g.dataDir, 0o755) // whoever writes there is told better what is wrong
	}
	return g.dataDir
}

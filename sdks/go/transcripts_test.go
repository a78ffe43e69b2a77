package hilt_test

// Every conversation of spec/transcripts, played by a host over real pipes against an extension that is written with the
// public API: what the transcript has the extension say, its handlers are made to do.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	hilt "hilt-sdk"
)

const transcriptPatience = 5 * time.Second

// What no conversation of one extension written with an SDK has, by its name among the needs.
var never = map[any]string{
	"raw": "no SDK would do this", "two_extensions": "there is one extension", "failing": "it does not start",
}

// Conversations that an extension written with this package cannot have, and why.
var impossible = map[string]string{
	"jsonrpc/handshake-before-initialize": "all is said after initialize: what is registered depends on the host",
	"panel-that-is-not-open":              "only panels that are open are drawn",
}

type obj = map[string]any

type step map[string]any

func TestEveryTranscript(t *testing.T) {
	found, _ := filepath.Glob("../../spec/transcripts/*.jsonl")
	more, _ := filepath.Glob("../../spec/transcripts/jsonrpc/*.jsonl")
	if len(found) == 0 {
		t.Skip("spec/transcripts is not beside this copy of the package")
	}
	for _, file := range append(found, more...) {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "../../spec/transcripts/"), ".jsonl")
		t.Run(name, func(t *testing.T) {
			header, steps := readTranscript(t, file)
			if why := skipped(name, header); why != "" {
				tabulate(t, name, "skipped", why)
				t.Skip(why)
			}
			t.Parallel()
			play(t, header, steps)
			tabulate(t, name, "passed", "")
		})
	}
}

func skipped(name string, header obj) string {
	for _, need := range header["needs"].([]any) {
		if why := never[need]; why != "" {
			return why
		}
	}
	return impossible[name]
}

var tabulating sync.Mutex

// tabulate writes a line for the table of all SDKs.
func tabulate(t *testing.T, name, outcome, reason string) {
	path := os.Getenv("HILT_SDK_TABLE")
	if path == "" || t.Failed() {
		return
	}
	line := obj{"sdk": "go", "dialect": "frames", "transcript": name, "outcome": outcome}
	if short, is := strings.CutPrefix(name, "jsonrpc/"); is {
		line["dialect"], line["transcript"] = "jsonrpc", short
	}
	if reason != "" {
		line["reason"] = reason
	}
	tabulating.Lock()
	defer tabulating.Unlock()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	encoded, _ := json.Marshal(line)
	if _, err := file.Write(append(encoded, '\n')); err != nil {
		t.Fatal(err)
	}
}

func readTranscript(t *testing.T, file string) (obj, []step) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var header obj
	steps := []step{}
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		value := parsed(t, line)
		if i == 0 {
			header = value
		} else {
			steps = append(steps, value)
		}
	}
	return header, steps
}

func parsed(t *testing.T, line string) obj {
	var value obj
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return value
}

// player is the host, and holds the strings of the extension's handlers.
type player struct {
	t      *testing.T
	ext    *hilt.Extension
	framed bool
	write  *os.File
	lines  chan obj
	exit   chan error
	over   chan struct{}
	vars   map[string]any
	// own has the ids that the extension gave to its own questions, by those of the transcript.
	own     map[string]any
	cancels map[string]context.CancelFunc
	visits  chan *visit
	open    map[string]*visit
	panels  map[string]*scriptPanel
	call    string
	steps   []step

	mu sync.Mutex
	// told is what the host told without asking, heard what handlers were told.
	told, heard []string
}

func play(t *testing.T, header obj, steps []step) {
	toExt, write, err := os.Pipe()
	read, fromExt, failed := os.Pipe()
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	p := &player{
		t: t, ext: hilt.New("demo", "1.0.0"), framed: header["dialect"] != "jsonrpc", write: write, lines: make(chan obj, 1000),
		exit: make(chan error, 1), over: make(chan struct{}), vars: map[string]any{}, own: map[string]any{},
		cancels: map[string]context.CancelFunc{}, visits: make(chan *visit, 10), open: map[string]*visit{}, panels: map[string]*scriptPanel{},
	}
	p.ext.LogTo(testLog{t})
	opening, steps := p.opening(steps)
	for _, one := range opening {
		p.register(one)
	}
	dialect := hilt.Frames
	if !p.framed {
		dialect = hilt.JSONRPC
	}
	go p.listen(read)
	go func() {
		err := p.ext.Serve(toExt, fromExt, dialect)
		fromExt.Close()
		p.exit <- err
	}()
	p.steps = steps
	p.greet(header, opening)
	for i, one := range steps {
		p.take(i, one)
	}
	p.end()
}

type testLog struct{ t *testing.T }

func (l testLog) Write(text []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(text)))
	return len(text), nil
}

func (p *player) listen(read *os.File) {
	defer close(p.lines)
	lines := bufio.NewReader(read)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		p.lines <- parsed(p.t, line)
	}
}

// opening parts what is registered at the beginning from all that follows.
func (p *player) opening(steps []step) (opening []obj, rest []step) {
	greeted := false
	for i, one := range steps {
		said, _ := one["ext"].(obj)
		if said == nil {
			continue
		}
		if said["type"] == "ready" || said["id"] != nil && said["method"] == nil {
			rest = steps[i+1:]
			greeted = true
			break
		}
		opening = append(opening, said)
	}
	if !greeted {
		p.t.Fatal("there is no handshake")
	}
	return opening, slices.DeleteFunc(rest, func(one step) bool {
		told, _ := one["host"].(obj)
		return told["type"] == "hello_ack"
	})
}

var capabilities = map[bool][]string{
	true: {"call_tool", "host_request", "host_notify", "ext_request", "register", "tool_progress", "tool_cancel"},
	false: {
		"panel/open", "panel/render", "panel/close", "tool/progress", "interceptor/event", "interceptor/content",
		"register/late", "register/models", "host/unsubscribe", "setStatus",
	},
}

// greet plays the handshake. What needs nothing is played by the first version of zot; in the other dialect the host is
// hilt, since needs are not told for all that piglet lacks.
func (p *player) greet(header obj, opening []obj) {
	registered := []obj{}
	if p.framed {
		hello := p.next("hello")
		p.match(obj{"type": "hello", "name": "demo", "version": "1.0.0"}, hello)
		able := texts(hello, "capabilities")
		for _, wanted := range append(texts(opening[0], "capabilities"), "tool_cancel") {
			if !slices.Contains(able, wanted) {
				p.t.Errorf("it does not say that it is able to do %s", wanted)
			}
		}
		ack := obj{"type": "hello_ack", "protocol_version": 1, "zot_version": "0.1.62", "cwd": "/w", "provider": "p", "model": "m"}
		if len(header["needs"].([]any)) > 0 {
			ack["host"], ack["host_version"], ack["capabilities"] = "hilt", "0.1.0", capabilities[true]
		}
		p.send(ack)
	} else {
		params := obj{"protocolVersion": "5", "cwd": "/w", "host": "hilt", "hostVersion": "0.1.0", "capabilities": capabilities[false]}
		p.send(obj{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
	}
	for {
		line := p.next("registrations")
		if line["type"] == "ready" {
			break
		}
		if line["result"] != nil {
			p.match(obj{"result": obj{"name": "demo", "version": "1.0.0"}}, line)
			break
		}
		registered = append(registered, line)
	}
	p.sameRegistrations(joined(opening), joined(registered))
}

// joined leaves hello out, and makes one of all subscriptions.
func joined(lines []obj) []obj {
	rest := []obj{}
	all := obj{"type": "subscribe", "events": []any{}, "intercept": []any{}}
	for _, line := range lines {
		switch line["type"] {
		case "hello":
		case "subscribe":
			for _, kind := range []string{"events", "intercept"} {
				more, _ := line[kind].([]any)
				all[kind] = append(all[kind].([]any), more...)
			}
		default:
			rest = append(rest, line)
		}
	}
	if len(all["events"].([]any))+len(all["intercept"].([]any)) > 0 {
		rest = append(rest, all)
	}
	return rest
}

func (p *player) sameRegistrations(expected, actual []obj) {
	if len(expected) != len(actual) {
		p.t.Fatalf("%d registrations, and not %d: %v", len(actual), len(expected), actual)
	}
	for _, pattern := range expected {
		if !slices.ContainsFunc(actual, func(line obj) bool { return p.fits(pattern, line) == nil }) {
			p.t.Fatalf("this was not registered: %v\nbut %v", pattern, actual)
		}
	}
}

func (p *player) send(line obj) {
	encoded, err := json.Marshal(line)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.write.Write(append(encoded, '\n')); err != nil {
		p.t.Fatal(err)
	}
}

func (p *player) next(what string) obj {
	p.t.Helper()
	select {
	case line, more := <-p.lines:
		if !more {
			p.t.Fatalf("it ended, and never said %s", what)
		}
		return line
	case <-time.After(transcriptPatience):
		p.t.Fatalf("it never said %s", what)
	}
	return nil
}

func (p *player) take(i int, one step) {
	p.t.Helper()
	switch {
	case one["host"] != nil:
		p.tell(one["host"].(obj))
	case one["ext"] != nil:
		p.expect(i, one["ext"].(obj))
	case one["ext_raw"] != nil:
		text := one["ext_raw"].(string)
		for name, value := range p.vars {
			text = strings.ReplaceAll(text, "${"+strings.TrimPrefix(name, "$")+"}", fmt.Sprint(value))
		}
		p.expect(i, lowered(parsed(p.t, text)).(obj))
	}
}

// lowered writes keys in lower case, which says the same in that dialect.
func lowered(value any) any {
	switch held := value.(type) {
	case obj:
		all := obj{}
		for key, member := range held {
			if key == strings.ToUpper(key[:1])+key[1:] {
				key = strings.ToLower(key)
			}
			all[key] = lowered(member)
		}
		return all
	case []any:
		for i := range held {
			held[i] = lowered(held[i])
		}
	}
	return value
}

// tell sends what the host says, and waits until a handler has it if it is a question.
func (p *player) tell(pattern obj) {
	line := p.filled(pattern).(obj)
	isAnswer := line["type"] == "host_response" || line["type"] == "tool_result" || !p.framed && line["id"] != nil && line["method"] == nil
	if isAnswer {
		key := fmt.Sprint(line["id"])
		actual, there := p.own[key]
		if !there {
			p.t.Fatalf("nothing was asked with %s", key)
		}
		delete(p.own, key)
		line["id"] = actual
		p.send(line)
		return
	}
	if asked, is := line["params"].(obj); is && line["method"] == "provider/stream" && asked["model"] == nil {
		asked["model"] = obj{"id": "m1"} // every host says which; this one is asked again for the same
	}
	p.remember(line)
	p.send(line)
	if line["id"] == nil || line["type"] == "tool_cancel" || line["method"] == "$/cancelRequest" {
		return
	}
	select {
	case visit := <-p.visits:
		visit.question = line
		p.open[fmt.Sprint(line["id"])] = visit
	case <-time.After(transcriptPatience):
		p.t.Fatalf("no handler was asked: %v", line)
	}
}

// remember keeps what handlers shall hear of.
func (p *player) remember(line obj) {
	params, _ := line["params"].(obj)
	if p.framed {
		params = line
	}
	word := ""
	switch fmt.Sprint(line["type"], line["method"]) {
	case "event<nil>":
		word = "event " + fmt.Sprint(line["event"])
	case "panel_key<nil>", "<nil>panel/key":
		word = fmt.Sprint("key ", params["key"], params["text"])
	case "panel_resize<nil>", "<nil>panel/resize":
		word = fmt.Sprint("size ", params["width"], " ", params["height"])
	case "panel_close<nil>", "<nil>panel/closed":
		word = "closed"
	case "ext_notifyeventBus/event", "<nil>eventBus/event":
		word = "bus"
	}
	if word != "" {
		p.mu.Lock()
		p.told = append(p.told, strings.ReplaceAll(word, "<nil>", ""))
		p.mu.Unlock()
	}
}

func (p *player) hear(word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = append(p.heard, word)
}

// filled is a pattern as it is sent.
func (p *player) filled(pattern any) any {
	switch held := pattern.(type) {
	case obj:
		if text, is := held["$contains"]; is {
			return text
		}
		if member, is := held["$has"]; is {
			return []any{p.filled(member)}
		}
		all := obj{}
		for key, member := range held {
			if member == "$any" || member == "$absent" {
				continue
			}
			all[key] = p.filled(member)
		}
		return all
	case []any:
		all := []any{}
		for _, member := range held {
			all = append(all, p.filled(member))
		}
		return all
	case string:
		if !isVariable(held) {
			return held
		}
		if _, known := p.vars[held]; !known {
			if strings.HasPrefix(held, "$#") {
				p.vars[held] = json.Number(strconv.Itoa(1000 + len(p.vars)))
			} else {
				p.vars[held] = fmt.Sprintf("v%d", len(p.vars))
			}
		}
		return p.vars[held]
	}
	return pattern
}

func isVariable(text string) bool {
	return strings.HasPrefix(text, "$") && len(text) > 1 && text != "$/cancelRequest"
}

func (p *player) match(pattern, line obj) {
	p.t.Helper()
	if err := p.fits(pattern, line); err != nil {
		got, _ := json.Marshal(line)
		wanted, _ := json.Marshal(pattern)
		p.t.Fatalf("%v\nsaid     %s\nexpected %s", err, got, wanted)
	}
}

// fits is nil when a value contains a pattern. A member at its default and a missing one are the same.
func (p *player) fits(pattern, value any) error {
	if isDefault(pattern) && isDefault(value) {
		return nil
	}
	switch wanted := pattern.(type) {
	case obj:
		if text, is := wanted["$contains"]; is {
			if got, _ := value.(string); !strings.Contains(got, text.(string)) {
				return fmt.Errorf("%q has no %q in it", got, text)
			}
			return nil
		}
		if member, is := wanted["$has"]; is {
			list, _ := value.([]any)
			if !slices.ContainsFunc(list, func(one any) bool { return p.fits(member, one) == nil }) {
				return fmt.Errorf("%v has no %v", value, member)
			}
			return nil
		}
		members, is := value.(obj)
		if !is {
			return fmt.Errorf("%v is no object", value)
		}
		for key, member := range wanted {
			got, there := members[key]
			if !there && isDefault(member) {
				continue
			}
			if err := p.fits(member, got); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		return nil
	case []any:
		list, is := value.([]any)
		if !is || len(list) != len(wanted) {
			return fmt.Errorf("%v is not as long as %v", value, wanted)
		}
		for i := range wanted {
			if err := p.fits(wanted[i], list[i]); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return nil
	case string:
		if wanted == "$any" {
			return nil
		}
		if isVariable(wanted) {
			if known, there := p.vars[wanted]; there {
				return p.fits(known, value)
			}
			p.vars[wanted] = value
			return nil
		}
	}
	if fmt.Sprintf("%T %v", pattern, pattern) != fmt.Sprintf("%T %v", value, value) {
		return fmt.Errorf("%v is not %v", value, pattern)
	}
	return nil
}

func isDefault(value any) bool {
	switch held := value.(type) {
	case nil:
		return true
	case string:
		return held == "" || held == "$absent" || held == "info" || held == "noop"
	case bool:
		return !held
	case json.Number:
		return held == "0"
	case []any:
		return len(held) == 0
	case obj:
		return len(held) == 0
	}
	return false
}

// end closes the extension's input. It may still answer what it was asked; nothing else comes, and it ends well.
func (p *player) end() {
	deadline := time.Now().Add(transcriptPatience)
	for {
		p.mu.Lock()
		same := slices.Equal(p.told, p.heard)
		told, heard := p.told, p.heard
		p.mu.Unlock()
		if same {
			break
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("told %q, but handlers heard %q", told, heard)
		}
		time.Sleep(time.Millisecond)
	}
	close(p.over)
	p.write.Close()
	for line := range p.lines {
		id := fmt.Sprint(line["id"])
		if _, asked := p.open[id]; !asked && line["type"] != "shutdown_ack" && !taken(line) {
			p.t.Errorf("this came besides: %v", line)
		}
	}
	select {
	case err := <-p.exit:
		if err != nil {
			p.t.Errorf("it ended with %v", err)
		}
	case <-time.After(transcriptPatience):
		p.t.Error("it did not end")
	}
}

// taken is a question that is given up at the end.
func taken(line obj) bool {
	return line["method"] == "$/cancelRequest" || line["type"] == "call_tool_cancel"
}

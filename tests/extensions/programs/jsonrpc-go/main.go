// A compiled extension of the jsonrpc dialect with nothing but the standard library. It counts: the words of a text,
// the calls of tools that were made, the messages it saw. Its structs have no JSON tags where Go programs have none.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
)

type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      *int            `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *fault          `json:"error,omitempty"`
}

type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Without tags: the keys on the wire are Type, Text, Data and Mime.
type block struct {
	Type, Text, Data, Mime string
}

type host struct {
	mutex   sync.Mutex
	out     *os.File
	last    int
	waiting map[int]chan message
	calls   int
	seen    []string
}

func (h *host) send(m message) {
	m.JSONRPC = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if _, err := h.out.Write(append(line, '\n')); err != nil {
		os.Exit(1)
	}
}

func raw(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

func (h *host) tell(method string, params any) {
	h.send(message{Method: method, Params: raw(params)})
}

func (h *host) answer(id int, result any) {
	h.send(message{ID: &id, Result: raw(result)})
}

func (h *host) fail(id, code int, reason string) {
	h.send(message{ID: &id, Error: &fault{code, reason}})
}

// ask numbers its questions from 1, as the host does on its side.
func (h *host) ask(method string, params any) message {
	answer := make(chan message, 1)
	h.mutex.Lock()
	h.last++
	id := h.last
	h.waiting[id] = answer
	h.mutex.Unlock()
	h.send(message{ID: &id, Method: method, Params: raw(params)})
	return <-answer
}

func (h *host) initialize(id int) {
	var config struct{ Values map[string]any }
	answer := h.ask("host/config.get", map[string]any{"keys": []string{"agent.maxTurns"}})
	if answer.Error != nil || json.Unmarshal(answer.Result, &config) != nil {
		h.fail(id, -32603, "no configuration")
		return
	}
	if h.out != os.Stdout {
		fmt.Println("stray words on standard output")
	}
	h.tell("register/tool", map[string]any{
		"name": "words", "description": "count the words of a text", "promptHint": "", "deferred": false,
		"parameters": map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}}},
	})
	h.tell("register/tool", map[string]any{
		"name": "stop", "description": "stop the turn", "parameters": nil, "promptHint": "", "deferred": false,
	})
	h.tell("register/command", map[string]any{"name": "tally", "description": "what was counted", "immediate": true})
	h.tell("register/interceptor", map[string]any{"name": "counter", "priority": 100})
	h.tell("register/eventHandler", map[string]any{"name": "watch", "priority": 0, "events": []string{"EventAgentEnd"}})
	h.tell("register/messageHook", map[string]any{"name": "context", "priority": 0})
	h.answer(id, map[string]any{"name": "tally", "version": "0.3.0", "maxTurns": config.Values["agent.maxTurns"]})
}

func (h *host) handle(m message) {
	id := *m.ID
	var p struct {
		Name, ToolName, Message string
		Args                    json.RawMessage
		Details                 any
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		h.fail(id, -32600, err.Error())
		return
	}
	switch m.Method {
	case "initialize":
		h.initialize(id)
	case "tool/execute":
		h.execute(id, p.Name, p.Args)
	case "command/execute":
		h.tell("notify", map[string]any{"message": fmt.Sprintf("%d calls", h.calls), "level": "info"})
		h.answer(id, map[string]any{})
	case "interceptor/before":
		h.before(id, p.ToolName, p.Args)
	case "interceptor/after":
		h.mutex.Lock()
		h.seen = append(h.seen, p.ToolName)
		h.mutex.Unlock()
		h.answer(id, map[string]any{"details": p.Details})
	case "event/dispatch":
		h.answer(id, map[string]any{"action": map[string]any{
			"type": "setStatus", "payload": map[string]any{"Key": "tally", "Text": strings.Join(h.seen, ",")},
		}})
	case "messageHook/onMessage":
		h.answer(id, map[string]any{"injection": "The user said: " + p.Message})
	default:
		h.fail(id, -32601, "unknown method: "+m.Method)
	}
}

func (h *host) execute(id int, name string, args json.RawMessage) {
	var given struct{ Text string }
	if json.Unmarshal(args, &given) != nil {
		h.fail(id, -32602, "bad arguments")
		return
	}
	if name == "stop" {
		h.send(message{Method: "abort", Params: json.RawMessage("null")})
	}
	text := fmt.Sprintf("%d words in <%s>", len(strings.Fields(given.Text)), given.Text)
	h.answer(id, map[string]any{"content": []block{{Type: "text", Text: text}}, "isError": false})
}

// before refuses what wants to be root, and makes every text lower case.
func (h *host) before(id int, tool string, args json.RawMessage) {
	given := map[string]any{}
	if json.Unmarshal(args, &given) != nil {
		h.fail(id, -32600, "bad arguments")
		return
	}
	h.mutex.Lock()
	h.calls++
	h.mutex.Unlock()
	if command, _ := given["command"].(string); strings.Contains(command, "sudo") {
		h.answer(id, map[string]any{"allow": false, "args": given, "preview": "tally counts no sudo"})
		return
	}
	if text, ok := given["text"].(string); ok {
		given["text"] = strings.ToLower(text)
	}
	h.answer(id, map[string]any{"allow": true, "args": given})
}

func main() {
	in, out := pipes()
	h := &host{out: out, waiting: map[int]chan message{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 256*1024), 4*1024*1024)
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue
		}
		switch {
		case m.ID != nil && m.Method == "":
			h.mutex.Lock()
			answer := h.waiting[*m.ID]
			delete(h.waiting, *m.ID)
			h.mutex.Unlock()
			if answer != nil {
				answer <- m
			}
		case m.ID != nil:
			go h.handle(m)
		}
	}
}

package hilttest

// What an extension says, taken in as a host would, and what the host answers to its questions.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	hilt "hilt-sdk"
)

func (h *Host) read(from io.Reader) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var said map[string]any
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.UseNumber()
		if err := decoder.Decode(&said); err != nil {
			h.t.Errorf("the extension wrote what is no JSON: %q", line)
			continue
		}
		h.mu.Lock()
		reply := h.hear(said)
		if !reached(said) {
			h.said = append(h.said, said)
		}
		h.changed.Broadcast()
		h.mu.Unlock()
		if reply != nil {
			go reply()
		}
	}
}

// reached is the answer to what nobody asks.
func reached(said map[string]any) bool {
	fault, _ := said["error"].(map[string]any)
	return strings.HasSuffix(text(fault, "message"), unasked)
}

// hear takes in what was said; what it gives is to be done about it, outside of the lock.
func (h *Host) hear(said map[string]any) func() {
	if h.framed {
		return h.hearFrame(said)
	}
	id, method := said["id"], text(said, "method")
	params, _ := said["params"].(map[string]any)
	switch {
	case id != nil && method == "":
		h.results[fmt.Sprint(id)] = said
	case id != nil:
		return func() { h.serve(id, method, params) }
	case strings.HasPrefix(method, "register/"):
		kind := snake(strings.TrimPrefix(method, "register/"))
		h.registered[kind] = append(h.registered[kind], params)
	default:
		h.note(method, params)
	}
	return nil
}

func (h *Host) hearFrame(frame map[string]any) func() {
	params, _ := frame["params"].(map[string]any)
	switch kind := text(frame, "type"); kind {
	case "tool_result", "command_response", "event_intercept_response", "ext_response":
		h.results[text(frame, "id")] = frame
	case "register_tool", "register_command":
		kind = strings.TrimPrefix(kind, "register_")
		h.registered[kind] = append(h.registered[kind], frame)
	case "register":
		h.registered[text(frame, "kind")] = append(h.registered[text(frame, "kind")], frame)
	case "subscribe":
		h.registered["subscribe"] = append(h.registered["subscribe"], frame)
	case "host_request":
		return func() { h.serve(frame["id"], text(frame, "method"), params) }
	case "call_tool":
		return func() { h.serve(frame["id"], "host/executeTool", frame) }
	case "host_notify":
		h.note(text(frame, "method"), params)
	case "open_panel":
		panel, _ := frame["panel"].(map[string]any)
		h.open(panel, "id")
	case "submit", "submit_slash":
		h.note("sendMessage", map[string]any{"content": frame["text"]})
	case "tool_progress":
		h.note("tool/progress", map[string]any{"callId": frame["id"], "text": frame["text"]})
	case "panel_render":
		h.note("panel/render", frame)
	case "panel_close":
		h.note("panel/close", frame)
	default:
		h.note(kind, frame)
	}
	return nil
}

// note takes in what asks for no answer.
func (h *Host) note(method string, params map[string]any) {
	switch method {
	case "notify":
		level := text(params, "level")
		if level == "" {
			level = "info"
		}
		h.notes = append(h.notes, Note{level, text(params, "message")})
	case "clear_notes":
		h.notes = nil
	case "showMessage":
		h.shown = append(h.shown, text(params, "text"))
	case "setInputText":
		h.inserted = append(h.inserted, text(params, "text"))
	case "sendMessage":
		h.submitted = append(h.submitted, text(params, "content"))
	case "tool/progress":
		id := text(params, "callId")
		h.progress[id] = append(h.progress[id], text(params, "text"))
	case "provider/delta":
		h.pieces = append(h.pieces, params)
	case "log":
		line := text(params, "message")
		if level := text(params, "level"); level != string(hilt.LevelInfo) {
			line = level + ": " + line
		}
		fmt.Fprintln(&h.log, line)
	case "panel/open":
		h.open(params, "panel_id")
	case "panel/render":
		if panel := h.panel(text(params, "panel_id")); panel != nil {
			panel.lines, panel.footer = lines(params), text(params, "footer")
			if title := text(params, "title"); title != "" {
				panel.title = title
			}
		}
	case "panel/close":
		h.forget(text(params, "panel_id"))
	}
}

func (h *Host) open(params map[string]any, id string) *Panel {
	panel := h.panel(text(params, id))
	if panel == nil {
		panel = &Panel{host: h, id: text(params, id)}
		h.panels = append(h.panels, panel)
	}
	panel.title, panel.lines, panel.footer, panel.open = text(params, "title"), lines(params), text(params, "footer"), true
	return panel
}

func (h *Host) panel(id string) *Panel {
	for _, one := range h.panels {
		if one.id == id {
			return one
		}
	}
	return nil
}

func (h *Host) forget(id string) {
	if panel := h.panel(id); panel != nil {
		panel.open = false
		h.panels = slices.DeleteFunc(h.panels, func(one *Panel) bool { return one == panel })
	}
}

// serve answers what the extension asks.
func (h *Host) serve(id any, method string, params map[string]any) {
	result, err := h.result(method, params)
	var fault map[string]any
	if err != nil {
		told := &hilt.HostError{Code: -32603, Message: err.Error()}
		errors.As(err, &told)
		fault = map[string]any{"code": told.Code, "message": told.Message}
	}
	if h.framed && method == "host/executeTool" {
		answer := map[string]any{"type": "tool_result", "id": id, "name": params["name"]}
		if err != nil {
			answer["content"], answer["is_error"] = blocks(err.Error()), true
		} else if content, is := result.(map[string]any); is {
			answer["content"], answer["is_error"] = content["content"], content["isError"]
		}
		h.send(answer)
		return
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": id}
	if h.framed {
		answer = map[string]any{"type": "host_response", "id": id}
	}
	if fault != nil {
		answer["error"] = fault
	} else {
		answer["result"] = result
	}
	h.send(answer)
}

func (h *Host) result(method string, params map[string]any) (any, error) {
	h.mu.Lock()
	answer, given := h.answers[method]
	h.mu.Unlock()
	switch held := answer.(type) {
	case error:
		return nil, held
	case func(map[string]any) (any, error):
		value, err := held(params)
		return resultOf(method, value), err
	}
	if given {
		return resultOf(method, answer), nil
	}
	switch method {
	case "host/config.get":
		return map[string]any{"values": map[string]any{}}, nil
	case "host/subscribe":
		h.mu.Lock()
		defer h.mu.Unlock()
		h.count++
		h.topics[h.count] = text(params, "topic")
		return map[string]any{"subscriptionId": h.count}, nil
	case "host/publish":
		h.Publish(text(params, "topic"), params["data"])
		return map[string]any{}, nil
	case "host/unsubscribe":
		number, _ := params["subscriptionId"].(json.Number)
		id, _ := number.Int64()
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.topics, int(id))
		return map[string]any{}, nil
	}
	return nil, &hilt.HostError{Code: -32601, Message: "this test gives no answer to " + method + ": see Host.Answer"}
}

// resultOf takes a text for the result of a tool.
func resultOf(method string, answer any) any {
	if words, is := answer.(string); is && method == "host/executeTool" {
		return map[string]any{"content": blocks(words)}
	}
	return answer
}

func blocks(words string) []any {
	return []any{map[string]any{"type": "text", "text": words}}
}

func text(from map[string]any, key string) string {
	words, _ := from[key].(string)
	return words
}

func lines(from map[string]any) []string {
	all := []string{}
	list, _ := from["lines"].([]any)
	for _, line := range list {
		all = append(all, fmt.Sprint(line))
	}
	return all
}

// snake is promptSection as prompt_section.
func snake(name string) string {
	var written strings.Builder
	for _, letter := range name {
		if letter >= 'A' && letter <= 'Z' {
			written.WriteByte('_')
			letter += 'a' - 'A'
		}
		written.WriteRune(letter)
	}
	return written.String()
}

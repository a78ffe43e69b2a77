package hilt

// The frames dialect: one JSON object to a line, told apart by its `type`.

import (
	"encoding/json"
	"fmt"
	"strings"
)

type frames struct{}

func (frames) name() Dialect { return Frames }

// heardAs says what a frame of the host's is in the words of the other dialect.
var heardAs = map[string]struct {
	kind   kind
	method string
}{
	"hello_ack":        {greeting, "initialize"},
	"tool_call":        {question, "tool/execute"},
	"command_invoked":  {question, "command/execute"},
	"shortcut_invoked": {question, "shortcut/handle"},
	"event_intercept":  {question, "event_intercept"},
	"event":            {notice, "event"},
	"panel_key":        {notice, "panel/key"},
	"panel_resize":     {notice, "panel/resize"},
	"panel_close":      {notice, "panel/closed"},
	"tool_cancel":      {notice, "$/cancelRequest"},
	"shutdown":         {notice, "shutdown"},
	"tool_result":      {response, ""},
	"host_response":    {response, ""},
	"ext_request":      {question, ""},
	"ext_notify":       {notice, ""},
}

func (frames) read(line []byte) (incoming, error) {
	var frame struct {
		Type   string          `json:"type"`
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(line, &frame); err != nil {
		return incoming{}, err
	}
	known, there := heardAs[frame.Type]
	if !there {
		return incoming{}, nil
	}
	in := incoming{kind: known.kind, method: known.method, id: string(frame.ID), params: line}
	switch frame.Type {
	case "ext_request", "ext_notify":
		in.method, in.params = frame.Method, frame.Params
	case "tool_result":
		in.result = line
	case "host_response":
		in.result = frame.Result
		if len(frame.Error) > 0 && string(frame.Error) != "null" {
			in.fault = readFault(frame.Error)
		}
	}
	return in, nil
}

func readFault(raw json.RawMessage) *HostError {
	fault := &HostError{Code: codeFailed}
	if err := json.Unmarshal(raw, fault); err != nil {
		fault.Message = string(raw)
	}
	return fault
}

func (frames) greeted(in incoming) (greeted, error) {
	var ack struct {
		Capabilities []string `json:"capabilities"`
		Zot          string   `json:"zot_version"`
		Host         string   `json:"host"`
		HostVersion  string   `json:"host_version"`
		Provider     string   `json:"provider"`
		Model        string   `json:"model"`
		Cwd          string   `json:"cwd"`
		ExtensionDir string   `json:"extension_dir"`
		DataDir      string   `json:"data_dir"`
	}
	if err := json.Unmarshal(in.params, &ack); err != nil {
		return greeted{}, err
	}
	host := HostInfo{"zot", ack.Zot, Frames, ack.Capabilities, ack.Provider, ack.Model}
	if ack.Host == "hilt" {
		host.Name, host.Version = "hilt", ack.HostVersion
	}
	return greeted{host, ack.Cwd, ack.DataDir, ack.ExtensionDir}, nil
}

func (frames) hello(name, version string) obj {
	able := []string{"commands", "tools", "events", "panels", "tool_cancel", "call_tool"}
	return obj{"type": "hello", "name": name, "version": version, "capabilities": able}
}

func (frames) register(r registration) obj {
	switch r.kind {
	case "tool":
		tool := obj{"type": "register_tool", "schema": r.members["parameters"]}
		return merge(tool, present(only(r.members, "name", "description", "exposure", "deferred", "interactive", "namespace",
			"namespace_description", "namespace_instructions", "output_schema")))
	case "command":
		return merge(obj{"type": "register_command"}, present(only(r.members, "name", "description")))
	case "subscribe":
		return merge(obj{"type": "subscribe"}, present(r.members))
	}
	return merge(obj{"type": "register", "kind": r.kind}, present(r.members))
}

func (frames) answer(in incoming, value any, fault *HostError) []obj {
	id := json.RawMessage(in.id)
	switch in.method {
	case "tool/execute":
		if fault != nil {
			value = Result{Text: fault.Message, IsError: true}
		}
		return []obj{framedResult(id, value.(Result))}
	case "command/execute", "shortcut/handle":
		if fault != nil {
			return []obj{{"type": "command_response", "id": id, "error": fault.Message}}
		}
		return []obj{merge(obj{"type": "command_response", "id": id}, value.(Action).framed())}
	case "event_intercept":
		answer := obj{"type": "event_intercept_response", "id": id}
		if fault != nil {
			return []obj{merge(answer, obj{"block": true, "reason": fault.Message})}
		}
		return []obj{merge(answer, value.(obj))}
	}
	if fault != nil {
		return []obj{{"type": "ext_response", "id": id, "error": fault}}
	}
	return []obj{{"type": "ext_response", "id": id, "result": value}}
}

func framedResult(id json.RawMessage, result Result) obj {
	blocks := []obj{}
	for _, block := range result.explained() {
		blocks = append(blocks, block.wire("mime_type"))
	}
	answer := obj{"type": "tool_result", "id": id, "content": blocks}
	return merge(answer, present(obj{
		"is_error":           result.failed(),
		"structured_content": result.Structured,
		"activate_tools":     result.Activate,
	}))
}

func (frames) tell(method string, params obj) obj {
	switch method {
	case "notify":
		return merge(obj{"type": "notify"}, present(params))
	case "clear_notes":
		return obj{"type": "clear_notes"}
	case "sendMessage":
		text, _ := params["content"].(string)
		if strings.HasPrefix(strings.TrimSpace(text), "/") {
			return obj{"type": "submit_slash", "text": text}
		}
		return obj{"type": "submit", "text": text}
	case "tool/progress":
		return obj{"type": "tool_progress", "id": params["callId"], "text": params["text"]}
	case "panel/open":
		panel := present(params)
		panel["id"] = panel["panel_id"]
		delete(panel, "panel_id")
		return obj{"type": "open_panel", "panel": panel}
	case "panel/render":
		return merge(obj{"type": "panel_render"}, present(params))
	case "panel/close":
		return merge(obj{"type": "panel_close"}, params)
	}
	return obj{"type": "host_notify", "method": method, "params": params}
}

// asked is the id of one's own question.
func asked(id int) string { return fmt.Sprintf("q%d", id) }

func (frames) ask(id int, method string, params obj) obj {
	if method == "host/executeTool" {
		call := obj{"type": "call_tool", "id": asked(id), "name": params["name"], "args": params["args"]}
		return merge(call, present(obj{"parent_id": params["callId"]}))
	}
	return obj{"type": "host_request", "id": asked(id), "method": method, "params": params}
}

func (frames) takeBack(id int, method string) obj {
	if method == "host/executeTool" {
		return obj{"type": "call_tool_cancel", "id": asked(id)}
	}
	return obj{"type": "host_notify", "method": "$/cancelRequest", "params": obj{"id": asked(id)}}
}

package hilt

// The jsonrpc dialect: JSON-RPC 2.0, one message to a line, with the same methods in both directions.

import (
	"encoding/json"
	"os"
)

type jsonrpc struct{}

func (jsonrpc) name() Dialect { return JSONRPC }

func (jsonrpc) read(line []byte) (incoming, error) {
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(line, &message); err != nil {
		return incoming{}, err
	}
	in := incoming{method: message.Method, id: string(message.ID), params: message.Params, result: message.Result}
	if len(message.Error) > 0 && string(message.Error) != "null" {
		in.fault = readFault(message.Error)
	}
	numbered := in.id != "" && in.id != "null"
	switch {
	case numbered && in.method == "initialize":
		in.kind = greeting
	case numbered && in.method != "":
		in.kind = question
	case numbered:
		in.kind = response
	case in.method != "":
		in.kind = notice
	}
	return in, nil
}

func (jsonrpc) greeted(in incoming) (greeted, error) {
	var params struct {
		Cwd          string   `json:"cwd"`
		ConfigDir    string   `json:"configDir"`
		Capabilities []string `json:"capabilities"`
		Host         string   `json:"host"`
		HostVersion  string   `json:"hostVersion"`
	}
	if len(in.params) > 0 {
		if err := json.Unmarshal(in.params, &params); err != nil {
			return greeted{}, err
		}
	}
	host := HostInfo{Name: "piglet", Dialect: JSONRPC, Capabilities: params.Capabilities}
	if params.Host == "hilt" {
		host.Name, host.Version = "hilt", params.HostVersion
	}
	here, _ := os.Getwd() // hosts of this dialect do not say it, but start it there
	return greeted{host, params.Cwd, params.ConfigDir, here}, nil
}

var registeredBy = map[string]string{
	"tool":              "register/tool",
	"command":           "register/command",
	"prompt_section":    "register/promptSection",
	"interceptor":       "register/interceptor",
	"event_handler":     "register/eventHandler",
	"shortcut":          "register/shortcut",
	"message_hook":      "register/messageHook",
	"input_transformer": "register/inputTransformer",
	"compactor":         "register/compactor",
	"provider":          "register/provider",
}

func (d jsonrpc) register(r registration) obj {
	members := r.members
	if r.kind == "tool" {
		deferred := members["deferred"] == true || members["exposure"] == string(ExposureDeferred)
		members = merge(only(members, "name", "description", "parameters", "promptHint", "interruptBehavior"), obj{"deferred": deferred})
	}
	return d.tell(registeredBy[r.kind], present(members))
}

func (d jsonrpc) answer(in incoming, value any, fault *HostError) []obj {
	id := json.RawMessage(in.id)
	if fault != nil {
		return []obj{{"jsonrpc": "2.0", "id": id, "error": fault}}
	}
	before := []obj{}
	switch held := value.(type) {
	case Result:
		value = numberedResult(held)
	case Action:
		if told, params := held.told(); told != "" {
			before = append(before, d.tell(told, params))
		}
		value = obj{}
		if in.method == "shortcut/handle" {
			value = obj{"action": nil}
		}
	}
	return append(before, obj{"jsonrpc": "2.0", "id": id, "result": value})
}

func numberedResult(result Result) obj {
	blocks := []obj{}
	for _, block := range result.blocks() {
		blocks = append(blocks, block.wire("mime"))
	}
	return merge(obj{"content": blocks}, present(obj{
		"isError":   result.failed(),
		"errorCode": result.ErrorCode,
		"errorHint": result.ErrorHint,
	}))
}

func (jsonrpc) tell(method string, params obj) obj {
	return obj{"jsonrpc": "2.0", "method": method, "params": params}
}

func (jsonrpc) ask(id int, method string, params obj) obj {
	return obj{"jsonrpc": "2.0", "id": id, "method": method, "params": params}
}

func (d jsonrpc) takeBack(id int, _ string) obj {
	return d.tell("$/cancelRequest", obj{"id": id})
}

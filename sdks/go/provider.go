package hilt

// Providers: extensions that answer as a model.

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Model is a model that a provider brings.
type Model struct {
	ID            string    `json:"id"`
	Name          string    `json:"name,omitempty"`
	ContextWindow int       `json:"contextWindow,omitempty"`
	MaxTokens     int       `json:"maxTokens,omitempty"`
	Reasoning     bool      `json:"reasoning,omitempty"`
	Cost          ModelCost `json:"cost"`
}

// ModelCost is in US dollars for a million tokens.
type ModelCost struct {
	Input      float64 `json:"input,omitempty"`
	Output     float64 `json:"output,omitempty"`
	CacheRead  float64 `json:"cacheRead,omitempty"`
	CacheWrite float64 `json:"cacheWrite,omitempty"`
}

// AskedModel is the model that a request is for, as the host knows it.
type AskedModel struct {
	Model
	API      string            `json:"api"`
	Provider string            `json:"provider"`
	BaseURL  string            `json:"baseUrl"`
	Headers  map[string]string `json:"headers"`
}

// ProviderRequest is one answer that is wanted.
type ProviderRequest struct {
	Model    AskedModel      `json:"model"`
	System   string          `json:"system"`
	Messages []Message       `json:"messages"`
	Tools    []ProviderTool  `json:"tools"`
	Options  ProviderOptions `json:"options"`
}

// Text is what the user said last.
func (r *ProviderRequest) Text() string {
	for last := len(r.Messages) - 1; last >= 0; last-- {
		if message := r.Messages[last]; message.Role == "user" {
			return message.Text()
		}
	}
	return ""
}

// ProviderTool is a tool that the model may call.
type ProviderTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// ProviderOptions are what the user wants of the answer.
type ProviderOptions struct {
	Temperature *float64          `json:"temperature"`
	MaxTokens   int               `json:"maxTokens"`
	Thinking    string            `json:"thinking"`
	Headers     map[string]string `json:"headers"`
}

type provide func(ctx context.Context, request *ProviderRequest, reply *Reply) error

// Provider answers for all models of an API, "anthropic", "openai" or "google", or for models of its own under another name.
// The answer ends when the function returns; an error is one that the host may try again.
func (e *Extension) Provider(
	api string, models []Model, answer func(ctx context.Context, request *ProviderRequest, reply *Reply) error,
) error {
	if api == "" {
		return e.problem("a provider has the name of an API")
	}
	e.mu.Lock()
	e.providers[api] = answer
	e.mu.Unlock()
	members := obj{"api": api}
	if len(models) > 0 {
		members["models"] = models
		e.use("provider_models", "")
	}
	return e.register("providers", api, registration{"provider", members})
}

// Reply is the answer of a provider while it is being given. What is said here is shown at once.
type Reply struct {
	conn    *connection
	request int
	model   AskedModel
	mu      sync.Mutex
	content []obj
	// calls has the place of each call in the content.
	calls map[string]int
	usage TokenUsage
}

// Text says more of the answer.
func (r *Reply) Text(delta string) error { return r.say("text", delta) }

// Thinking says more of what the model thinks.
func (r *Reply) Thinking(delta string) error { return r.say("thinking", delta) }

func (r *Reply) say(kind, delta string) error {
	if delta == "" {
		return nil
	}
	r.mu.Lock()
	if last := len(r.content) - 1; last < 0 || r.content[last]["type"] != kind {
		r.content = append(r.content, obj{"type": kind, kind: ""})
	}
	index := len(r.content) - 1
	said, _ := r.content[index][kind].(string)
	r.content[index][kind] = said + delta
	r.mu.Unlock()
	return r.piece(obj{"type": kind + "_delta", "index": index, "delta": delta})
}

func (r *Reply) piece(members obj) error {
	return r.conn.tell("provider/delta", merge(present(members), obj{"requestId": r.request}))
}

// ToolCallDelta shows a piece of a call's arguments, as JSON text. ToolCall with the same id makes it.
func (r *Reply) ToolCallDelta(id, name, delta string) error {
	index, first := r.place(id)
	piece := obj{"type": "toolcall_delta", "index": index, "delta": delta}
	if first {
		piece["tool"] = obj{"id": id, "name": name, "arguments": ""}
	}
	return r.piece(piece)
}

// place is where a call stands in the content, and whether this is the first that is heard of it.
func (r *Reply) place(id string) (index int, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	index, there := r.calls[id]
	if !there {
		index = len(r.content)
		r.calls[id] = index
		r.content = append(r.content, nil)
	}
	return index, !there
}

// ToolCall calls a tool, whose arguments are anything that is an object in JSON. Without an id it is given one.
func (r *Reply) ToolCall(name string, args any, id string) error {
	if args == nil {
		args = obj{}
	}
	text, err := jsonText(args)
	if err != nil {
		return fmt.Errorf("the arguments of %s: %w", name, err)
	}
	if !strings.HasPrefix(text, "{") {
		return fmt.Errorf("the arguments of %s are not an object", name)
	}
	if id == "" {
		r.mu.Lock()
		id = fmt.Sprintf("call_%d_%d", r.request, len(r.content))
		r.mu.Unlock()
	}
	index, _ := r.place(id)
	r.mu.Lock()
	r.content[index] = obj{"type": "tool_call", "id": id, "name": name, "arguments": json.RawMessage(text)}
	r.mu.Unlock()
	return r.piece(obj{"type": "toolcall_end", "index": index, "tool": obj{"id": id, "name": name, "arguments": text}})
}

// TokenUsage is how many tokens an answer took, and what they cost in US dollars.
type TokenUsage struct {
	Input      int     `json:"inputTokens"`
	Output     int     `json:"outputTokens"`
	CacheRead  int     `json:"cacheReadTokens"`
	CacheWrite int     `json:"cacheWriteTokens"`
	Cost       float64 `json:"cost"`
}

// Usage says how many tokens were used.
func (r *Reply) Usage(usage TokenUsage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usage = usage
}

func (r *Reply) message() obj {
	r.mu.Lock()
	defer r.mu.Unlock()
	content, stop := []obj{}, "stop"
	for _, block := range r.content {
		if block == nil { // a call that was begun and never made
			continue
		}
		if content = append(content, block); block["type"] == "tool_call" {
			stop = "toolUse"
		}
	}
	return obj{
		"role": "assistant", "content": content, "model": r.model.ID, "provider": r.model.Provider, "stopReason": stop,
		"usage": r.usage, "timestamp": time.Now().UTC().Format(time.RFC3339Nano),
	}
}

func (c *connection) stream(q *asking) (any, *HostError) {
	var params struct {
		ProviderRequest
		RequestID int `json:"requestId"`
	}
	if err := json.Unmarshal(q.params, &params); err != nil {
		return nil, badParams(err)
	}
	api, answer := c.ext.provider(params.Model.API)
	if answer == nil {
		return nil, &HostError{codeBadParams, fmt.Sprintf("unknown API: %s", params.Model.API)}
	}
	if params.Model.Provider == "" {
		params.Model.Provider = api
	}
	reply := &Reply{conn: c, request: params.RequestID, model: params.Model, calls: map[string]int{}}
	err := guardedErr(c.ext, "provider", func() error { return answer(q.ctx, &params.ProviderRequest, reply) })
	if err != nil {
		return nil, &HostError{codeFailed, err.Error()}
	}
	return obj{"message": reply.message()}, nil
}

// provider is the one of an API, or else the only one there is.
func (e *Extension) provider(api string) (string, provide) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if answer, there := e.providers[api]; there {
		return api, answer
	}
	if len(e.providers) == 1 {
		for name, answer := range e.providers {
			return name, answer
		}
	}
	return "", nil
}

package hilt

// Events: what happened, told by the names of the frames dialect whichever the host speaks, and by those of the other as
// they come.

import (
	"encoding/json"
	"slices"
	"strings"
)

// Event is something that happened. What was not told is empty.
type Event struct {
	// Name is which one, such as "turn_end".
	Name      string         `json:"event"`
	Text      string         `json:"text"`
	Step      int            `json:"step"`
	Stop      string         `json:"stop"`
	Error     string         `json:"error"`
	Reason    string         `json:"reason"`
	Status    string         `json:"status"`
	ToolID    string         `json:"tool_id"`
	ToolName  string         `json:"tool_name"`
	ToolArgs  map[string]any `json:"tool_args"`
	SessionID string         `json:"session_id"`
	Cwd       string         `json:"cwd"`
	Sequence  int            `json:"sequence"`
	// Data is all of it, as it came.
	Data json.RawMessage `json:"-"`
}

// HandlerOption says more about a handler.
type HandlerOption func(*handlerOptions)

type handlerOptions struct {
	name     string
	priority int
	ordered  bool
	required bool
}

// Named gives a handler a name of its own; without one it goes by the extension's.
func Named(name string) HandlerOption {
	return func(o *handlerOptions) { o.name = name }
}

// Priority puts handlers in order, where the host has one: interceptors with the highest first, hooks and transformers with
// the lowest.
func Priority(priority int) HandlerOption {
	return func(o *handlerOptions) { o.priority, o.ordered = priority, true }
}

// Required is for interceptors: in a host that would not ask them the extension refuses to start.
func Required() HandlerOption {
	return func(o *handlerOptions) { o.required = true }
}

func chosen(options []HandlerOption) handlerOptions {
	var all handlerOptions
	for _, option := range options {
		option(&all)
	}
	return all
}

var firstEvents = []string{"session_start", "turn_start", "assistant_message", "tool_call", "turn_end"}

var moreEvents = []string{
	"session_end", "user_prompt_submit", "tool_confirmation_requested", "permission_decision", "tool_result", "pre_compact",
	"post_compact", "subagent_start", "subagent_stop",
}

// counterparts are what events are called in the jsonrpc dialect. It does not have the others.
var counterparts = map[string]string{
	"turn_start":         "EventTurnStart",
	"turn_end":           "EventTurnEnd",
	"assistant_message":  "EventStreamDone",
	"tool_call":          "EventToolStart",
	"tool_result":        "EventToolEnd",
	"user_prompt_submit": "EventMessagePre",
	"post_compact":       "EventCompact",
}

// EveryEvent stands for all events of the jsonrpc dialect.
const EveryEvent = "*"

func isRaw(name string) bool { return strings.HasPrefix(name, "Event") || name == EveryEvent }

type listener struct {
	event    string
	name     string
	priority int
	handle   func(*Event) error
}

// On is told of events, one after the other, in order. The names are those of the frames dialect, such as "turn_end", in
// every host that has a counterpart; those that begin with Event, such as "EventTurnEnd", and [EveryEvent] are those of the
// jsonrpc dialect, with their own members in Data.
func (e *Extension) On(event string, handle func(*Event) error, options ...HandlerOption) error {
	if !isRaw(event) && !slices.Contains(firstEvents, event) && !slices.Contains(moreEvents, event) {
		return e.problem("there is no event %q: there are %s, and those of the jsonrpc dialect, such as EventTurnStart",
			event, strings.Join(append(slices.Clone(firstEvents), moreEvents...), ", "))
	}
	given := chosen(options)
	if given.name == "" {
		given.name = e.name
	}
	e.mu.Lock()
	e.listeners = append(e.listeners, listener{event, given.name, given.priority, handle})
	e.mu.Unlock()
	feature := "events"
	if isRaw(event) {
		feature = "raw_events"
	} else if slices.Contains(moreEvents, event) {
		feature = "more_events"
	}
	e.use(feature, event)
	return e.late(feature, (*connection).eventRegistrations)
}

// eventRegistrations are what the host has to be told so that it tells what is listened to.
func (c *connection) eventRegistrations() []registration {
	c.ext.mu.Lock()
	listeners := slices.Clone(c.ext.listeners)
	c.ext.mu.Unlock()
	plain := []string{}
	handlers := []registration{}
	for _, one := range listeners {
		if c.dialect.name() == Frames && !isRaw(one.event) {
			plain = append(plain, one.event)
			continue
		}
		handlers = c.withListener(handlers, one)
	}
	if c.dialect.name() == Frames && !c.offers("raw_events") {
		handlers = nil
	}
	if len(plain) > 0 {
		handlers = append(handlers, registration{"subscribe", obj{"events": unique(plain)}})
	}
	return handlers
}

// withListener adds what a listener wants to hear to the handler of its name. piglet runs every handler for each of them, so
// there they are one.
func (c *connection) withListener(handlers []registration, one listener) []registration {
	events := []string{one.event}
	switch {
	case one.event == EveryEvent:
		events = []string{}
	case one.event == "turn_start" && c.dialect.name() == JSONRPC:
		events = []string{"EventAgentStart", "EventTurnStart"} // the first tells where steps begin to count
	case !isRaw(one.event):
		if counterparts[one.event] == "" {
			return handlers
		}
		events = []string{counterparts[one.event]}
	}
	for _, handler := range handlers {
		if handler.members["name"] != one.name && c.greeted.host.Name != "piglet" {
			continue
		}
		known, _ := handler.members["events"].([]string)
		if len(known) == 0 || len(events) == 0 {
			handler.members["events"] = []string{}
		} else {
			handler.members["events"] = unique(append(known, events...))
		}
		return handlers
	}
	members := obj{"name": one.name, "priority": one.priority, "events": events}
	return append(handlers, registration{"event_handler", members})
}

func unique(names []string) []string {
	kept := []string{}
	for _, name := range names {
		if !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return kept
}

// heardEvent tells those who listen of an event of the frames dialect.
func (c *connection) heardEvent(raw json.RawMessage) {
	event := &Event{Data: slices.Clone(raw)}
	if err := unmarshalNumbers(raw, event); err != nil {
		c.ext.logf("event: %v", err)
		return
	}
	c.events.do(c, func() {
		_ = c.inform(event) // it is in the log
	})
}

// inform calls all who listen to an event, and gives the first error.
func (c *connection) inform(event *Event) error {
	c.ext.mu.Lock()
	listeners := slices.Clone(c.ext.listeners)
	c.ext.mu.Unlock()
	var first error
	for _, one := range listeners {
		if one.event != event.Name && !(one.event == EveryEvent && isRaw(event.Name)) {
			continue
		}
		err := guardedErr(c.ext, "event "+event.Name, func() error { return one.handle(event) })
		if err != nil && first == nil {
			first = err
		}
		if err != nil {
			c.ext.logf("event %s: %v", event.Name, err)
		}
	}
	return first
}

// dispatched tells of an event of the jsonrpc dialect: as it came, and as the one it corresponds to.
func (c *connection) dispatched(q *asking) (any, *HostError) {
	var params struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(q.params, &params); err != nil {
		return nil, badParams(err)
	}
	err := c.inform(&Event{Name: params.Type, Data: params.Data})
	switch params.Type {
	case "EventAgentStart":
		c.step = 0
	case "EventTurnStart":
		c.step++
	}
	for name, counterpart := range counterparts {
		if counterpart != params.Type || c.dialect.name() == Frames {
			continue
		}
		event, problem := translated(name, params.Data, c.step)
		if problem != nil {
			return nil, badParams(problem)
		}
		if failed := c.inform(event); err == nil {
			err = failed
		}
	}
	if err != nil {
		return nil, &HostError{codeFailed, err.Error()}
	}
	return obj{"action": nil}, nil
}

// translated is an event of the jsonrpc dialect by its name in the other, as far as it is told.
func translated(name string, data json.RawMessage, step int) (*Event, error) {
	var told struct {
		Content         json.RawMessage
		Message         Message
		Assistant       *Message
		ToolCallID      string
		ToolName        string
		Args            map[string]any
		IsError         bool
		After           int
		TokensAtCompact int
	}
	if len(data) > 0 {
		if err := unmarshalNumbers(data, &told); err != nil {
			return nil, err
		}
	}
	event := &Event{Name: name, Data: data, ToolID: told.ToolCallID, ToolName: told.ToolName}
	switch name {
	case "turn_start":
		event.Step = step
	case "turn_end":
		event.Stop, event.Error = stopOf(told.Assistant)
	case "assistant_message":
		event.Text = told.Message.Text()
	case "user_prompt_submit":
		if json.Unmarshal(told.Content, &event.Text) != nil {
			event.Text = textOf(told.Content)
		}
	case "tool_call":
		event.ToolArgs = told.Args
	case "tool_result":
		event.Status = "completed"
		if told.IsError {
			event.Status = "failed"
		}
	case "post_compact":
		event.Status = "completed"
	}
	return event, nil
}

func stopOf(message *Message) (stop, problem string) {
	if message == nil {
		return "error", ""
	}
	var told struct {
		StopReason string `json:"stopReason"`
		Error      string `json:"error"`
	}
	_ = json.Unmarshal(message.Data, &told) // without it, it ended as most do
	switch told.StopReason {
	case "", "stop":
		return "end", told.Error
	case "toolUse":
		return "tool_use", told.Error
	}
	return told.StopReason, told.Error
}

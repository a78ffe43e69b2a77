package hilt

// How interceptors are asked, in the words of either dialect, and what comes of several.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// interception is a question for an interceptor, whatever it is about.
type interception struct {
	ctx     context.Context
	event   string
	tool    string
	id      string
	origin  string
	args    map[string]any
	step    int
	text    string
	start   AgentStart
	content []Content
	isError bool
	details json.RawMessage
}

type decider func(*interception) (Verdict, error)

// interceptor is one or several handlers that go by one name.
type interceptor struct {
	name     string
	priority int
	// named means that somebody gave it a name or a priority: it wants to be registered by it, where that is possible.
	named    bool
	deciders map[string][]decider
	// order is that in which events were given handlers.
	order []string
}

func (i *interceptor) events() []string {
	asked := []string{}
	for _, event := range i.order {
		if event == "tool_result" {
			event = "tool_call" // whoever is asked before is shown what came of it
		}
		asked = append(asked, event)
	}
	return unique(asked)
}

// registration names the events only where they are more than what every interceptor is asked about.
func (i *interceptor) registration(events []string) registration {
	if slices.Equal(events, []string{"tool_call"}) {
		events = nil
	}
	return registration{"interceptor", obj{"name": i.name, "priority": i.priority, "events": events}}
}

// ruling is what came out of all handlers of an event.
type ruling struct {
	blocked bool
	reason  string
	args    json.RawMessage
	text    *string
	result  *Result
}

// rule asks one handler after the other; each sees what the one before it left, and the first that refuses ends it.
func (e *Extension) rule(deciders []decider, in *interception) ruling {
	var out ruling
	for _, decide := range deciders {
		verdict, err := guarded(e, "interceptor of "+in.event, func() (Verdict, error) { return decide(in) })
		if err == nil {
			err = out.apply(in, verdict)
		}
		if err != nil {
			e.logf("interceptor of %s: %v", in.event, err)
			if !slices.Contains(goesWith[in.event], "block") {
				continue
			}
			out = ruling{blocked: true, reason: fmt.Sprintf("%s's guard failed: %v", e.name, err)}
		}
		if out.blocked {
			break
		}
	}
	return out
}

func (r *ruling) apply(in *interception, verdict Verdict) error {
	if verdict.kind != "" && !slices.Contains(goesWith[in.event], verdict.kind) {
		return fmt.Errorf("a verdict of %q does not go with %s", verdict.kind, in.event)
	}
	switch verdict.kind {
	case "block":
		*r = ruling{blocked: true, reason: verdict.text}
	case "rewrite":
		args, err := json.Marshal(verdict.args)
		if err != nil {
			return err
		}
		value, err := decodeAny(args)
		members, isObject := value.(map[string]any)
		if err != nil || !isObject {
			return errors.New("new arguments are an object")
		}
		r.args, in.args = args, members
	case "replace":
		if in.event == "assistant_message" && verdict.text == "" {
			*r = ruling{blocked: true} // a host would take an empty text for none
			return nil
		}
		r.text, r.result = &verdict.text, nil
		in.text, in.content = verdict.text, replacedText(in.content, verdict.text)
	case "result":
		result, err := structured(verdict.result)
		if err != nil {
			return err
		}
		r.text, r.result = nil, &result
		in.content, in.isError = result.blocks(), result.failed()
	}
	return nil
}

// replacedText puts one text in the place of all text, and leaves pictures.
func replacedText(content []Content, text string) []Content {
	replaced := []Content{{Text: text}}
	for _, block := range content {
		if block.MIME != "" {
			replaced = append(replaced, block)
		}
	}
	return replaced
}

// askedFrame answers the frames dialect's `event_intercept`.
func (c *connection) askedFrame(q *asking) (any, *HostError) {
	var frame struct {
		Event        string         `json:"event"`
		ToolID       string         `json:"tool_id"`
		ToolName     string         `json:"tool_name"`
		ToolArgs     map[string]any `json:"tool_args"`
		Origin       string         `json:"origin_extension"`
		Step         int            `json:"step"`
		Text         string         `json:"text"`
		SystemPrompt string         `json:"system_prompt"`
		SessionID    string         `json:"session_id"`
		RunID        string         `json:"agent_run_id"`
		Cwd          string         `json:"cwd"`
		Provider     string         `json:"provider"`
		Model        string         `json:"model"`
	}
	if err := unmarshalNumbers(q.params, &frame); err != nil {
		return nil, badParams(err)
	}
	in := &interception{
		ctx: q.ctx, event: frame.Event, tool: frame.ToolName, id: frame.ToolID, origin: frame.Origin, args: frame.ToolArgs,
		step: frame.Step, text: frame.Text,
		start: AgentStart{SessionID: frame.SessionID, RunID: frame.RunID, Cwd: frame.Cwd, Provider: frame.Provider, Model: frame.Model},
	}
	if frame.Event == "before_agent_start" {
		in.text = frame.SystemPrompt
	}
	out := c.ext.rule(c.subscribedDeciders(frame.Event), in)
	answer := present(obj{"block": out.blocked, "reason": out.reason, "modified_args": out.args})
	if out.text != nil && frame.Event == "before_agent_start" {
		answer["system_prompt"] = *out.text
	} else if out.text != nil {
		answer["replace_text"] = *out.text
	}
	return answer, nil
}

// subscribedDeciders are those that are asked by event and not by name.
func (c *connection) subscribedDeciders(event string) []decider {
	c.ext.mu.Lock()
	defer c.ext.mu.Unlock()
	all := []decider{}
	for _, one := range c.ext.interceptors {
		if !c.byName(one) {
			all = append(all, one.deciders[event]...)
		}
	}
	return all
}

func (c *connection) namedDeciders(name, event string) []decider {
	c.ext.mu.Lock()
	defer c.ext.mu.Unlock()
	for _, one := range c.ext.interceptors {
		if one.name == name && (c.byName(one) || event == "tool_result") {
			return slices.Clone(one.deciders[event])
		}
	}
	return nil
}

// byName tells whether the host asks this interceptor by its name.
func (c *connection) byName(one *interceptor) bool {
	return c.dialect.name() == JSONRPC || one.named && c.offers("priorities")
}

func (c *connection) askedBefore(q *asking) (any, *HostError) {
	var params struct {
		Name   string         `json:"name"`
		Tool   string         `json:"toolName"`
		Args   map[string]any `json:"args"`
		CallID string         `json:"callId"`
		Origin string         `json:"origin"`
	}
	if err := unmarshalNumbers(q.params, &params); err != nil {
		return nil, badParams(err)
	}
	in := &interception{ctx: q.ctx, event: "tool_call", tool: params.Tool, id: params.CallID, origin: params.Origin, args: params.Args}
	out := c.ext.rule(c.namedDeciders(params.Name, "tool_call"), in)
	if out.blocked {
		return merge(obj{"allow": false}, present(obj{"preview": out.reason})), nil
	}
	return merge(obj{"allow": true}, present(obj{"args": out.args})), nil
}

func (c *connection) askedEvent(q *asking) (any, *HostError) {
	var params struct {
		Name         string `json:"name"`
		Event        string `json:"event"`
		Step         int    `json:"step"`
		Text         string `json:"text"`
		SystemPrompt string `json:"systemPrompt"`
		SessionID    string `json:"sessionId"`
		RunID        string `json:"runId"`
		Cwd          string `json:"cwd"`
		Provider     string `json:"provider"`
		Model        string `json:"model"`
	}
	if err := json.Unmarshal(q.params, &params); err != nil {
		return nil, badParams(err)
	}
	in := &interception{
		ctx: q.ctx, event: params.Event, step: params.Step, text: params.Text,
		start: AgentStart{SessionID: params.SessionID, RunID: params.RunID, Cwd: params.Cwd, Provider: params.Provider, Model: params.Model},
	}
	if params.Event == "before_agent_start" {
		in.text = params.SystemPrompt
	}
	out := c.ext.rule(c.namedDeciders(params.Name, params.Event), in)
	if out.blocked {
		return merge(obj{"allow": false}, present(obj{"reason": out.reason})), nil
	}
	answer := obj{"allow": true}
	if out.text != nil && params.Event == "before_agent_start" {
		answer["systemPrompt"] = *out.text
	} else if out.text != nil {
		answer["text"] = *out.text
	}
	return answer, nil
}

func (c *connection) askedAfter(q *asking) (any, *HostError) {
	var params struct {
		Name    string          `json:"name"`
		Tool    string          `json:"toolName"`
		CallID  string          `json:"callId"`
		Details json.RawMessage `json:"details"`
		IsError bool            `json:"isError"`
		Content []obj           `json:"content"`
	}
	if err := unmarshalNumbers(q.params, &params); err != nil {
		return nil, badParams(err)
	}
	// A host that knows of details only would take a missing one for none.
	answer := present(obj{"details": params.Details})
	deciders := c.namedDeciders(params.Name, "tool_result")
	if len(deciders) == 0 {
		return answer, nil
	}
	shown, err := readResult(q.params)
	if err != nil {
		return nil, badParams(err)
	}
	in := &interception{
		ctx: q.ctx, event: "tool_result", tool: params.Tool, id: params.CallID, content: shown.Content, isError: params.IsError,
		details: params.Details,
	}
	if params.Content == nil {
		in.content = detailed(params.Details)
	}
	out := c.ext.rule(deciders, in)
	switch {
	case out.text != nil:
		answer["content"] = *out.text
		answer["details"] = withContent(params.Details, []obj{{"type": "text", "text": *out.text}})
	case out.result != nil:
		blocks := []obj{}
		for _, block := range out.result.blocks() {
			blocks = append(blocks, block.wire("mime"))
		}
		answer["content"], answer["isError"] = blocks, out.result.failed()
		answer["details"] = withContent(params.Details, blocks)
	}
	return answer, nil
}

// detailed are the blocks that a host without a place for results has in the details, if it has any.
func detailed(details json.RawMessage) []Content {
	if len(details) == 0 {
		return nil
	}
	result, err := readResult(details)
	if err != nil {
		return nil
	}
	return result.Content
}

func withContent(details json.RawMessage, blocks []obj) obj {
	facts := obj{}
	_ = unmarshalNumbers(details, &facts) // what is no object has no place for blocks
	return merge(facts, obj{"content": blocks})
}

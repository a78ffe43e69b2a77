package hilt

// Interceptors: what is asked before something happens, and may refuse or change it.

import (
	"context"
	"encoding/json"
)

// Verdict is what an interceptor says. The zero value lets things happen as they are.
type Verdict struct {
	kind   string
	text   string
	args   any
	result Result
}

// Allow lets it happen as it is.
func Allow() Verdict { return Verdict{} }

// Block refuses: the tool is not run, the turn ends, the answer is not shown. The reason is for the model or the user.
func Block(reason string) Verdict { return Verdict{kind: "block", text: reason} }

// Rewrite has the tool run with these arguments instead.
func Rewrite(args any) Verdict { return Verdict{kind: "rewrite", args: args} }

// Replace puts a text in the place of an answer, a system prompt or the text of a result.
func Replace(text string) Verdict { return Verdict{kind: "replace", text: text} }

// ReplaceResult puts a whole result in the place of another.
func ReplaceResult(result Result) Verdict { return Verdict{kind: "result", result: result} }

// goesWith are the verdicts that have a meaning for an event, besides letting it happen.
var goesWith = map[string][]string{
	"tool_call":          {"block", "rewrite"},
	"turn_start":         {"block"},
	"assistant_message":  {"block", "replace"},
	"before_agent_start": {"replace"},
	"tool_result":        {"replace", "result"},
}

// ToolCall is a call that is about to be made.
type ToolCall struct {
	Tool string
	ID   string
	// Args are the arguments as changed so far; numbers in them are of the type json.Number.
	Args map[string]any
	// Origin is the extension that makes the call, when it is not the model.
	Origin string
	ctx    context.Context
}

// Context is done when nobody waits for the verdict any more.
func (c *ToolCall) Context() context.Context { return c.ctx }

// Text is an argument that is a text; empty when it is none.
func (c *ToolCall) Text(name string) string {
	text, _ := c.Args[name].(string)
	return text
}

// TurnStart is a call of the model that is about to be made.
type TurnStart struct {
	// Step counts from 1 for each prompt.
	Step int
	ctx  context.Context
}

// Context is done when nobody waits for the verdict any more.
func (t *TurnStart) Context() context.Context { return t.ctx }

// AssistantMessage is an answer of the model that is about to be shown.
type AssistantMessage struct {
	Text string
	ctx  context.Context
}

// Context is done when nobody waits for the verdict any more.
func (m *AssistantMessage) Context() context.Context { return m.ctx }

// AgentStart is a prompt that is about to be answered.
type AgentStart struct {
	SystemPrompt string
	SessionID    string
	RunID        string
	Cwd          string
	Provider     string
	Model        string
	ctx          context.Context
}

// Context is done when nobody waits for the verdict any more.
func (s *AgentStart) Context() context.Context { return s.ctx }

// ToolResult is what a tool returned, before the model reads it.
type ToolResult struct {
	Tool    string
	ID      string
	Content []Content
	IsError bool
	// Details are the tool's own facts, if it has any.
	Details json.RawMessage
	ctx     context.Context
}

// Context is done when nobody waits for the verdict any more.
func (r *ToolResult) Context() context.Context { return r.ctx }

// Text is all its text.
func (r *ToolResult) Text() string { return Result{Content: r.Content}.All() }

// InterceptToolCall is asked before each call of a tool, and may refuse it or change its arguments. An error, or a panic,
// refuses it.
func (e *Extension) InterceptToolCall(decide func(*ToolCall) (Verdict, error), options ...HandlerOption) error {
	return e.intercept("tool_call", options, func(in *interception) (Verdict, error) {
		return decide(&ToolCall{in.tool, in.id, in.args, in.origin, in.ctx})
	})
}

// InterceptTurnStart is asked before each call of the model, and may refuse it. An error, or a panic, refuses it.
func (e *Extension) InterceptTurnStart(decide func(*TurnStart) (Verdict, error), options ...HandlerOption) error {
	return e.intercept("turn_start", options, func(in *interception) (Verdict, error) {
		return decide(&TurnStart{in.step, in.ctx})
	})
}

// InterceptAssistantMessage is asked before an answer is shown, and may replace its text or keep it back. An error, or a
// panic, keeps it back.
func (e *Extension) InterceptAssistantMessage(decide func(*AssistantMessage) (Verdict, error), options ...HandlerOption) error {
	return e.intercept("assistant_message", options, func(in *interception) (Verdict, error) {
		return decide(&AssistantMessage{in.text, in.ctx})
	})
}

// InterceptAgentStart is asked before each prompt, and may replace the system prompt. After an error it stays as it is.
func (e *Extension) InterceptAgentStart(decide func(*AgentStart) (Verdict, error), options ...HandlerOption) error {
	return e.intercept("before_agent_start", options, func(in *interception) (Verdict, error) {
		start := in.start
		start.SystemPrompt, start.ctx = in.text, in.ctx
		return decide(&start)
	})
}

// InterceptToolResult is shown each result before the model reads it, and may replace it. After an error it stays as it is.
func (e *Extension) InterceptToolResult(decide func(*ToolResult) (Verdict, error), options ...HandlerOption) error {
	return e.intercept("tool_result", options, func(in *interception) (Verdict, error) {
		return decide(&ToolResult{in.tool, in.id, in.content, in.isError, in.details, in.ctx})
	})
}

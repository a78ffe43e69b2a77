package hilt

// Tools: registering them, and the call that a handler is given.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"time"
)

// Exposure says who sees a tool.
type Exposure string

const (
	// ExposureDirect is everybody, the default.
	ExposureDirect Exposure = "direct"
	// ExposureDeferred tools are known to the model by their name until they are activated.
	ExposureDeferred Exposure = "deferred"
	// ExposureCodemode tools are for other tools only.
	ExposureCodemode Exposure = "codemode"
	// ExposureModelOnly tools are for the model only.
	ExposureModelOnly Exposure = "model-only"
)

// ToolOption says more about a tool.
type ToolOption func(members obj) error

// WithSchema gives the JSON Schema of the arguments, for those that no struct describes.
func WithSchema(schema Schema) ToolOption {
	return func(members obj) error {
		text, err := json.Marshal(schema)
		if err != nil {
			return fmt.Errorf("the schema is no JSON: %w", err)
		}
		// What was read back has the same Go types everywhere, whoever wrote it.
		value, err := decodeAny(text)
		members["parameters"] = value
		return err
	}
}

// WithOutputSchema gives the JSON Schema of structured results.
func WithOutputSchema(schema Schema) ToolOption { return member("output_schema", schema) }

// WithExposure says who sees the tool.
func WithExposure(exposure Exposure) ToolOption { return member("exposure", string(exposure)) }

// Deferred tools are known to the model by name and one line, and whole once they are activated.
func Deferred() ToolOption { return member("deferred", true) }

// Interactive tools wait for a person, so they have no deadline.
func Interactive() ToolOption { return member("interactive", true) }

// WithNamespace puts the tool into a family, with a description of it and how it is meant to be used.
func WithNamespace(name, description, instructions string) ToolOption {
	return func(members obj) error {
		merge(members, obj{"namespace": name, "namespace_description": description, "namespace_instructions": instructions})
		return nil
	}
}

// WithPromptHint adds a line about the tool to the system prompt.
func WithPromptHint(hint string) ToolOption { return member("promptHint", hint) }

// Uninterruptible tools go on when the turn is stopped, and are not told.
func Uninterruptible() ToolOption { return member("interruptBehavior", "block") }

func member(name string, value any) ToolOption {
	return func(members obj) error {
		members[name] = value
		return nil
	}
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

type tool struct {
	schema Schema
	run    func(call *Call, arguments json.RawMessage) (any, error)
}

// Tool registers a tool for the model. The schema of its arguments is made from the struct A, see [SchemaOf]; A may also be
// json.RawMessage or a map, with [WithSchema]. What it returns is a string, a [Result], a [Content] or several, or anything
// that can be written as JSON, which programs get as data too. An error is what the model reads, and so is a panic.
//
// What is wrong with a registration is returned here, and by [Extension.Run] as well, so it need not be looked at.
func Tool[A, R any](e *Extension, name, description string, run func(call *Call, args A) (R, error), options ...ToolOption) error {
	members := obj{"name": name, "description": description}
	for _, option := range options {
		if err := option(members); err != nil {
			return e.problem("tool %q: %w", name, err)
		}
	}
	if !toolName.MatchString(name) {
		return e.problem("tool %q: a name is 1 to 64 of the characters A-Z, a-z, 0-9, _ and -", name)
	}
	if _, given := members["parameters"]; !given {
		schema, err := structSchema(reflect.TypeFor[A]())
		if err != nil {
			return e.problem("tool %q: %w", name, err)
		}
		members["parameters"] = schema
	}
	schema, _ := members["parameters"].(Schema)
	e.addTool(name, tool{schema, func(call *Call, arguments json.RawMessage) (any, error) {
		var args A
		if err := json.Unmarshal(arguments, &args); err != nil {
			return nil, fmt.Errorf("the arguments do not fit: %w", err)
		}
		return run(call, args)
	}})
	if members["deferred"] == true || members["exposure"] == string(ExposureDeferred) {
		e.use("deferred_tools", name)
	}
	return e.register("tools", name, registration{"tool", members})
}

// Call is one call of a tool, or one run of a command.
type Call struct {
	// ID is the call's own, by which the host knows it.
	ID string
	// Name is that of the tool or command.
	Name string

	ext    *Extension
	ctx    context.Context
	isTool bool
}

// Context is done when the call was cancelled, or the extension ends.
func (c *Call) Context() context.Context { return c.ctx }

// Cancelled tells whether nobody waits for the answer any more.
func (c *Call) Cancelled() bool { return c.ctx.Err() != nil }

// OnCancel has something done, on a goroutine of its own, when the call is cancelled.
func (c *Call) OnCancel(do func()) { context.AfterFunc(c.ctx, do) }

// Wait waits, and tells whether the call was cancelled meanwhile, which ends the waiting.
func (c *Call) Wait(duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-c.ctx.Done():
		return true
	case <-timer.C:
		return false
	}
}

// Progress shows a piece of output of a tool that still runs. Hosts that have no place for it are not told.
func (c *Call) Progress(text string) error {
	if !c.isTool {
		return errors.New("progress is for tools")
	}
	return c.ext.hint("progress", "tool/progress", obj{"callId": c.ID, "text": text})
}

// CallTool runs another tool on behalf of this call: guards and permissions count as for a call of the model. A tool that
// fails, or is refused, is a result with IsError.
func (c *Call) CallTool(name string, args any) (Result, error) {
	return c.CallToolContext(c.ctx, name, args)
}

// CallToolContext is CallTool, given up when the context is done.
func (c *Call) CallToolContext(ctx context.Context, name string, args any) (Result, error) {
	parent := ""
	if c.isTool {
		parent = c.ID
	}
	return c.ext.callTool(ctx, name, args, parent)
}

func (c *connection) runTool(q *asking) (any, *HostError) {
	var params struct {
		CallID string          `json:"callId"`
		ID     json.RawMessage `json:"id"`
		Name   string          `json:"name"`
		Args   json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal(q.params, &params); err != nil {
		return nil, badParams(err)
	}
	if c.dialect.name() == Frames {
		_ = json.Unmarshal(params.ID, &params.CallID)
	}
	found, there := c.ext.tool(params.Name)
	if !there {
		return nil, &HostError{codeBadParams, fmt.Sprintf("unknown tool: %s", params.Name)}
	}
	arguments, err := checked(params.Args, found.schema)
	if err != nil {
		return failure(err), nil
	}
	call := &Call{ID: params.CallID, Name: params.Name, ext: c.ext, ctx: q.ctx, isTool: true}
	value, err := guarded(c.ext, "tool "+params.Name, func() (any, error) { return found.run(call, arguments) })
	if err != nil {
		return failure(err), nil
	}
	result, err := resultOf(value)
	if err != nil {
		return failure(err), nil
	}
	return c.activated(q.ctx, result), nil
}

// activated asks the host to show tools to the model, where the result has no place for that.
func (c *connection) activated(ctx context.Context, result Result) Result {
	if c.dialect.name() == JSONRPC {
		for _, name := range result.Activate {
			if err := c.ext.host.ActivateTool(ctx, name); err != nil {
				c.ext.logf("activate %s: %v", name, err)
			}
		}
	}
	return result
}

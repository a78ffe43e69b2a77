package hilt

// Slash commands and shortcuts, and what they may ask the host to do.

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Action is what a command or a shortcut wants done. The zero value is nothing.
type Action struct {
	kind  string
	text  string
	tool  string
	args  any
	panel Panel
	// spec is the panel as it is opened, once it is drawn.
	spec obj
}

// Nothing is the action of a command that has done its work.
func Nothing() Action { return Action{} }

// Show shows a text to the user. The model never sees it.
func Show(text string) Action { return Action{kind: "display", text: text} }

// Showf is Show with a format.
func Showf(format string, args ...any) Action { return Show(fmt.Sprintf(format, args...)) }

// Insert puts a text into the user's input.
func Insert(text string) Action { return Action{kind: "insert", text: text} }

// Prompt sends a text to the model.
func Prompt(text string) Action { return Action{kind: "prompt", text: text} }

// ToolPrompt runs a tool and sends the prompt to the model with what it returned.
func ToolPrompt(tool string, args any, prompt string) Action {
	return Action{kind: "tool_prompt", tool: tool, args: args, text: prompt}
}

// OpenPanel opens a panel.
func OpenPanel(panel Panel) Action { return Action{kind: "open_panel", panel: panel} }

func (a Action) framed() obj {
	switch a.kind {
	case "":
		return obj{"action": "noop"}
	case "tool_prompt":
		return obj{"action": a.kind, "tool_name": a.tool, "tool_args": a.args, "prompt": a.text}
	case "open_panel":
		spec := present(a.spec)
		spec["id"] = spec["panel_id"]
		delete(spec, "panel_id")
		return obj{"action": a.kind, "open_panel": spec}
	}
	return obj{"action": a.kind, a.kind: a.text}
}

// told is the notice that has the action done in the jsonrpc dialect.
func (a Action) told() (string, obj) {
	switch a.kind {
	case "display":
		if a.text == "" {
			return "", nil
		}
		return "showMessage", obj{"text": a.text}
	case "insert":
		return "setInputText", obj{"text": a.text}
	case "prompt":
		return "sendMessage", obj{"content": a.text}
	case "open_panel":
		return "panel/open", present(a.spec)
	}
	return "", nil
}

// CommandOption says more about a command.
type CommandOption func(members obj)

// Immediate commands run beside a turn; others wait for its end, where the host makes the difference.
func Immediate() CommandOption {
	return func(members obj) { members["immediate"] = true }
}

// Command registers a slash command. It is given what was typed behind it.
func (e *Extension) Command(
	name, about string, run func(call *Call, args string) (Action, error), options ...CommandOption,
) error {
	name = strings.TrimPrefix(name, "/")
	if size := utf8.RuneCountInString(name); size < 1 || size > 64 || strings.ContainsFunc(name, unicode.IsSpace) {
		return e.problem("command %q: a name is 1 to 64 characters without spaces", name)
	}
	members := obj{"name": name, "description": about}
	for _, option := range options {
		option(members)
	}
	e.mu.Lock()
	e.commands[name] = run
	e.mu.Unlock()
	return e.register("commands", "/"+name, registration{"command", members})
}

// Shortcut registers a key, such as ctrl+g.
func (e *Extension) Shortcut(key, about string, run func(call *Call) (Action, error)) error {
	if key == "" || strings.ContainsFunc(key, unicode.IsSpace) {
		return e.problem("shortcut %q: a key is written as ctrl+g", key)
	}
	e.mu.Lock()
	e.shortcuts[key] = run
	e.mu.Unlock()
	return e.register("shortcuts", key, registration{"shortcut", obj{"key": key, "description": about}})
}

func (c *connection) runCommand(q *asking) (any, *HostError) {
	var params struct {
		Name string `json:"name"`
		Args string `json:"args"`
	}
	if err := json.Unmarshal(q.params, &params); err != nil {
		return nil, badParams(err)
	}
	c.ext.mu.Lock()
	run, there := c.ext.commands[params.Name]
	c.ext.mu.Unlock()
	if !there {
		return nil, &HostError{codeBadParams, fmt.Sprintf("unknown command: %s", params.Name)}
	}
	call := &Call{ID: strings.Trim(q.id, `"`), Name: params.Name, ext: c.ext, ctx: q.ctx}
	return c.act(q, "command /"+params.Name, func() (Action, error) { return run(call, params.Args) })
}

func (c *connection) runShortcut(q *asking) (any, *HostError) {
	var params struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal(q.params, &params); err != nil {
		return nil, badParams(err)
	}
	c.ext.mu.Lock()
	run, there := c.ext.shortcuts[params.Key]
	c.ext.mu.Unlock()
	if !there {
		return nil, &HostError{codeBadParams, fmt.Sprintf("unknown shortcut: %s", params.Key)}
	}
	call := &Call{ID: strings.Trim(q.id, `"`), Name: params.Key, ext: c.ext, ctx: q.ctx}
	return c.act(q, "shortcut "+params.Key, func() (Action, error) { return run(call) })
}

// act runs a handler and prepares the action it wants, so that the dialect only has to write it down.
func (c *connection) act(q *asking, what string, run func() (Action, error)) (any, *HostError) {
	action, err := guarded(c.ext, what, run)
	if err == nil {
		action, err = c.prepared(q, action)
	}
	if err != nil {
		return nil, &HostError{codeFailed, err.Error()}
	}
	return action, nil
}

// withResult is a prompt with what a tool returned, in the words of the host that knows how to do that.
func withResult(prompt, tool string, result Result) string {
	head := tool + " returned:\n"
	if result.failed() {
		head = tool + " failed:\n"
	}
	if prompt = strings.TrimSpace(prompt); prompt != "" {
		prompt += "\n\n"
	}
	return prompt + head + result.All()
}

func (c *connection) prepared(q *asking, action Action) (Action, error) {
	switch action.kind {
	case "open_panel":
		if !c.offers("panels") {
			return Show(inWords(action.panel)), nil
		}
		spec, err := c.panels.open(action.panel)
		action.spec = spec
		return action, err
	case "tool_prompt":
		if action.args == nil {
			action.args = obj{}
		}
		if c.dialect.name() == Frames && c.offers("tool_prompt") {
			return action, nil
		}
		result, err := c.ext.callTool(q.ctx, action.tool, action.args, "")
		if err != nil {
			return Action{}, fmt.Errorf("%s: %w", action.tool, err)
		}
		return Prompt(withResult(action.text, action.tool, result)), nil
	}
	return action, nil
}

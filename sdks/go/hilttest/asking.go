package hilttest

// What a host asks of an extension, and what came of it.

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	hilt "hilt-sdk"
)

// Result is what a tool answered.
type Result struct {
	// Text is all its text, joined by line breaks.
	Text    string
	Content []map[string]any
	IsError bool
	// Structured is the JSON of its data for programs; empty when there are none.
	Structured string
	Activated  []string
	// Progress is what it showed while it ran.
	Progress []string
}

// Call calls a tool as a model would, with arguments that are an object in JSON, or nil.
func (h *Host) Call(tool string, args any) Result {
	h.t.Helper()
	return h.CallContext(context.Background(), tool, args)
}

// CallContext is Call, cancelled as a user would when the context is done. The answer is waited for all the same.
func (h *Host) CallContext(ctx context.Context, tool string, args any) Result {
	h.t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	id, key := h.number()
	callID := key
	if h.framed {
		h.send(map[string]any{"type": "tool_call", "id": id, "name": tool, "args": args})
	} else {
		callID = "call_" + key
		params := map[string]any{"callId": callID, "name": tool, "args": args}
		h.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": "tool/execute", "params": params})
	}
	stop := context.AfterFunc(ctx, func() {
		if h.framed {
			h.send(map[string]any{"type": "tool_cancel", "id": id})
		} else {
			h.send(map[string]any{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": map[string]any{"id": id}})
		}
	})
	defer stop()
	answer, err := h.answered(key, "the call of "+tool)
	if err != nil {
		h.t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	result := h.readResult(answer)
	result.Progress = h.progress[callID]
	return result
}

func (h *Host) readResult(answer map[string]any) Result {
	told := answer
	if !h.framed {
		if fault, is := answer["error"].(map[string]any); is {
			return Result{Text: text(fault, "message"), IsError: true}
		}
		told, _ = answer["result"].(map[string]any)
	}
	result := contentResult(told["content"], told["is_error"] == true || told["isError"] == true)
	if data, there := told["structured_content"]; there {
		encoded, _ := json.Marshal(data) // it was JSON a moment ago
		result.Structured = string(encoded)
	}
	names, _ := told["activate_tools"].([]any)
	for _, name := range names {
		result.Activated = append(result.Activated, fmt.Sprint(name))
	}
	return result
}

func contentResult(content any, isError bool) Result {
	result := Result{IsError: isError}
	list, _ := content.([]any)
	texts := []string{}
	for _, one := range list {
		block, _ := one.(map[string]any)
		result.Content = append(result.Content, block)
		if block["type"] == "text" {
			texts = append(texts, text(block, "text"))
		}
	}
	result.Text = strings.Join(texts, "\n")
	return result
}

// Action is what a command or a shortcut wanted done.
type Action struct {
	Shown    string
	Inserted string
	Prompt   string
	// Tool and Args are those of a prompt with a tool's result.
	Tool  string
	Args  map[string]any
	Panel *Panel
	// Error is why it failed; empty when it did not.
	Error string
}

// Run runs a command: "/hi Ada".
func (h *Host) Run(line string) Action {
	h.t.Helper()
	name, args, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "/"), " ")
	args = strings.TrimSpace(args)
	if h.framed {
		frame := map[string]any{"type": "command_invoked", "name": name}
		if args != "" {
			frame["args"] = args
		}
		return h.acted(frame)
	}
	return h.acted(map[string]any{"method": "command/execute", "params": map[string]any{"name": name, "args": args}})
}

// Press presses a key that is registered.
func (h *Host) Press(key string) Action {
	h.t.Helper()
	if h.framed {
		return h.acted(map[string]any{"type": "shortcut_invoked", "key": key})
	}
	return h.acted(map[string]any{"method": "shortcut/handle", "params": map[string]any{"key": key}})
}

func (h *Host) acted(question map[string]any) Action {
	h.t.Helper()
	h.mu.Lock()
	shown, inserted, submitted, said := len(h.shown), len(h.inserted), len(h.submitted), len(h.said)
	h.mu.Unlock()
	answer, err := h.ask(question)
	if err != nil {
		h.t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.framed {
		return h.framedAction(answer)
	}
	action := Action{}
	if fault, is := answer["error"].(map[string]any); is {
		action.Error = text(fault, "message")
	}
	// In this dialect they are told beside the answer, before it.
	action.Shown = strings.Join(h.shown[shown:], "\n")
	action.Inserted = strings.Join(h.inserted[inserted:], "\n")
	action.Prompt = strings.Join(h.submitted[submitted:], "\n")
	for _, line := range h.said[said:] {
		if params, is := line["params"].(map[string]any); is && line["method"] == "panel/open" {
			action.Panel = h.panel(text(params, "panel_id"))
		}
	}
	return action
}

func (h *Host) framedAction(answer map[string]any) Action {
	action := Action{
		Shown: text(answer, "display"), Inserted: text(answer, "insert"), Prompt: text(answer, "prompt"),
		Tool: text(answer, "tool_name"), Error: text(answer, "error"),
	}
	action.Args, _ = answer["tool_args"].(map[string]any)
	if spec, is := answer["open_panel"].(map[string]any); is {
		action.Panel = h.open(spec, "id")
	}
	return action
}

// Verdict is what interceptors said.
type Verdict struct {
	Blocked bool
	Reason  string
	// Args are the arguments that the tool would be run with.
	Args map[string]any
	// Text is what would be shown of the answer, or read of the result.
	Text string
	// SystemPrompt is what it would be.
	SystemPrompt string
	// Result is what became of a tool's result.
	Result Result
	// Changed tells whether any of them was.
	Changed bool
}

// Intercept asks about a tool call.
func (h *Host) Intercept(tool string, args map[string]any) Verdict {
	h.t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	frame := map[string]any{"event": "tool_call", "tool_id": "call_1", "tool_name": tool, "tool_args": args}
	params := map[string]any{"toolName": tool, "args": args, "callId": "call_1"}
	return h.verdict(Verdict{Args: args}, frame, "interceptor/before", params)
}

// InterceptTurn asks about a call of the model.
func (h *Host) InterceptTurn(step int) Verdict {
	h.t.Helper()
	frame := map[string]any{"event": "turn_start", "step": step}
	return h.verdict(Verdict{}, frame, "interceptor/event", map[string]any{"event": "turn_start", "step": step})
}

// InterceptMessage asks about an answer of the model.
func (h *Host) InterceptMessage(words string) Verdict {
	h.t.Helper()
	frame := map[string]any{"event": "assistant_message", "text": words}
	return h.verdict(Verdict{Text: words}, frame, "interceptor/event", map[string]any{"event": "assistant_message", "text": words})
}

// InterceptPrompt asks about a system prompt.
func (h *Host) InterceptPrompt(system string) Verdict {
	h.t.Helper()
	frame := map[string]any{"event": "before_agent_start", "system_prompt": system}
	params := map[string]any{"event": "before_agent_start", "systemPrompt": system}
	return h.verdict(Verdict{SystemPrompt: system}, frame, "interceptor/event", params)
}

// InterceptResult shows a result of a tool.
func (h *Host) InterceptResult(tool, words string) Verdict {
	h.t.Helper()
	params := map[string]any{"toolName": tool, "callId": "call_1", "content": blocks(words)}
	return h.verdict(Verdict{Text: words, Result: contentResult(blocks(words), false)}, nil, "interceptor/after", params)
}

// verdict asks all interceptors: those that are asked by event, and then each of those that have a name.
func (h *Host) verdict(verdict Verdict, frame map[string]any, method string, params map[string]any) Verdict {
	h.t.Helper()
	if h.framed && frame != nil {
		frame["type"] = "event_intercept"
		answer, err := h.ask(frame)
		if err != nil {
			h.t.Fatal(err)
		}
		if verdict.take(answer); verdict.Blocked {
			return verdict
		}
	}
	for _, one := range h.Registered("interceptor") {
		asked := map[string]any{"name": one["name"]}
		for key, value := range params {
			asked[key] = value
		}
		if method == "interceptor/before" {
			asked["args"] = verdict.Args
		}
		answer, err := h.Method(method, asked)
		if err != nil {
			return Verdict{Blocked: true, Reason: err.Error()}
		}
		if verdict.take(answer); verdict.Blocked {
			return verdict
		}
	}
	return verdict
}

func (v *Verdict) take(answer map[string]any) {
	if answer["block"] == true || answer["allow"] == false {
		*v = Verdict{Blocked: true, Reason: text(answer, "reason") + text(answer, "preview")}
		return
	}
	for _, key := range []string{"modified_args", "args"} {
		if args, is := answer[key].(map[string]any); is {
			v.Args, v.Changed = args, true
		}
	}
	for _, key := range []string{"replace_text", "text"} {
		if held, is := answer[key].(string); is {
			v.Text, v.Changed = held, true
		}
	}
	for _, key := range []string{"system_prompt", "systemPrompt"} {
		if held, is := answer[key].(string); is {
			v.SystemPrompt, v.Changed = held, true
		}
	}
	if content, there := answer["content"]; there {
		if words, is := content.(string); is {
			content = blocks(words)
		}
		v.Result = contentResult(content, answer["isError"] == true)
		v.Text, v.Changed = v.Result.Text, true
	}
}

// Method asks by a method of the jsonrpc dialect, such as "messageHook/onMessage", and gives the result.
func (h *Host) Method(method string, params map[string]any) (map[string]any, error) {
	question := map[string]any{"method": method, "params": params}
	if h.framed {
		question["type"] = "ext_request"
	}
	answer, err := h.ask(question)
	if err != nil {
		return nil, err
	}
	if fault, is := answer["error"].(map[string]any); is {
		code, _ := fault["code"].(json.Number)
		number, _ := code.Int64()
		return nil, &hilt.HostError{Code: int(number), Message: text(fault, "message")}
	}
	result, _ := answer["result"].(map[string]any)
	return result, nil
}

// Hook gives what message hooks add to what the user says.
func (h *Host) Hook(words string) string {
	h.t.Helper()
	return text(h.method("messageHook/onMessage", map[string]any{"message": words}), "injection")
}

// Transform gives what transformers make of what the user types, or that they dealt with it.
func (h *Host) Transform(words string) (output string, handled bool) {
	h.t.Helper()
	result := h.method("inputTransformer/transform", map[string]any{"input": words})
	return text(result, "output"), result["handled"] == true
}

// Compact has the conversation made shorter.
func (h *Host) Compact(messages ...hilt.Message) []hilt.Message {
	h.t.Helper()
	result := h.method("compact/execute", map[string]any{"messages": messages})
	encoded, _ := json.Marshal(result["messages"]) // it was JSON a moment ago
	var shorter []hilt.Message
	if err := json.Unmarshal(encoded, &shorter); err != nil {
		h.t.Fatal(err)
	}
	return shorter
}

// ToolCall is a tool that a provider calls.
type ToolCall struct {
	Name string
	Args map[string]any
}

// Answer is what a provider answered.
type Answer struct {
	// Text is all its text.
	Text string
	// Thinking is what it thought before that.
	Thinking string
	// Calls are the tools that it calls.
	Calls []ToolCall
	// Message is the whole, as the host gets it.
	Message map[string]any
	// Error is why it failed; empty when it did not.
	Error string
}

// StreamOptions say whom to ask. Without them it is the first provider, and its first model.
type StreamOptions struct {
	API   string
	Model string
}

// Stream asks a provider.
func (h *Host) Stream(prompt string, options ...StreamOptions) Answer {
	h.t.Helper()
	api, model := "", ""
	if len(options) > 0 {
		api, model = options[0].API, options[0].Model
	}
	for _, one := range h.Registered("provider") {
		if api != "" && one["api"] != api {
			continue
		}
		api = text(one, "api")
		if models, _ := one["models"].([]any); model == "" && len(models) > 0 {
			model = text(models[0].(map[string]any), "id")
		}
		break
	}
	h.mu.Lock()
	h.count++
	number := h.count
	h.mu.Unlock()
	result, err := h.Method("provider/stream", map[string]any{
		"requestId": number, "model": map[string]any{"id": model, "api": api, "provider": api}, "system": "", "options": map[string]any{},
		"messages": []any{map[string]any{"role": "user", "content": prompt}},
	})
	if err != nil {
		return Answer{Error: err.Error()}
	}
	message, _ := result["message"].(map[string]any)
	answer := Answer{Message: message}
	content, _ := message["content"].([]any)
	for _, one := range content {
		block, _ := one.(map[string]any)
		answer.Text += text(block, "text")
		answer.Thinking += text(block, "thinking")
		if args, calls := block["arguments"].(map[string]any); calls {
			answer.Calls = append(answer.Calls, ToolCall{text(block, "name"), args})
		}
	}
	return answer
}

func (h *Host) method(method string, params map[string]any) map[string]any {
	h.t.Helper()
	result, err := h.Method(method, params)
	if err != nil {
		h.t.Fatalf("%s: %v", method, err)
	}
	return result
}

// Emit tells of an event, by a name and with the members of the frames dialect whichever is spoken, or by a name of the
// jsonrpc dialect with its data, and waits until all handlers have run.
func (h *Host) Emit(event string, members map[string]any) {
	h.t.Helper()
	raw := strings.HasPrefix(event, "Event")
	if h.framed && !raw {
		frame := map[string]any{"type": "event", "event": event}
		for key, value := range members {
			frame[key] = value
		}
		h.send(frame)
		h.settle()
		return
	}
	if !raw {
		event, members = counterpart(event, members)
	}
	if members == nil {
		members = map[string]any{}
	}
	if event == "" {
		return // this dialect does not have it
	}
	if _, err := h.Method("event/dispatch", map[string]any{"type": event, "data": members}); err != nil {
		h.log.Write([]byte(err.Error() + "\n"))
	}
	h.settle()
}

// counterpart is an event as the jsonrpc dialect tells it.
func counterpart(event string, members map[string]any) (string, map[string]any) {
	called := map[string]any{"ToolCallID": members["tool_id"], "ToolName": members["tool_name"]}
	switch event {
	case "turn_start":
		return "EventTurnStart", nil
	case "turn_end":
		stop := text(members, "stop")
		for dialect, other := range map[string]string{"end": "stop", "tool_use": "toolUse"} {
			if stop == dialect {
				stop = other
			}
		}
		return "EventTurnEnd", map[string]any{"Assistant": map[string]any{"stopReason": stop, "error": text(members, "error")}}
	case "assistant_message":
		said := map[string]any{"role": "assistant", "content": blocks(text(members, "text"))}
		return "EventStreamDone", map[string]any{"Message": said}
	case "user_prompt_submit":
		return "EventMessagePre", map[string]any{"Content": members["text"]}
	case "post_compact":
		return "EventCompact", map[string]any{"After": members["message_count"], "TokensAtCompact": members["token_estimate"]}
	case "tool_call":
		called["Args"] = members["tool_args"]
		return "EventToolStart", called
	case "tool_result":
		called["IsError"] = members["status"] != "completed"
		return "EventToolEnd", called
	}
	return "", nil
}

// Key presses a key in a panel: a name such as "down", or a character. Like all that happens to a panel, it has been dealt
// with when this returns.
func (h *Host) Key(panel *Panel, key string) {
	h.t.Helper()
	members := map[string]any{"panel_id": panel.id, "key": key}
	if len([]rune(key)) == 1 {
		members["key"], members["text"] = "rune", key
	}
	h.inPanel("panel_key", "panel/key", members)
}

// Resize says how much room there is for a panel.
func (h *Host) Resize(panel *Panel, width, height int) {
	h.inPanel("panel_resize", "panel/resize", map[string]any{"panel_id": panel.id, "width": width, "height": height})
}

// ClosePanel closes a panel as the user does.
func (h *Host) ClosePanel(panel *Panel) {
	h.mu.Lock()
	h.forget(panel.id)
	h.mu.Unlock()
	h.inPanel("panel_close", "panel/closed", map[string]any{"panel_id": panel.id})
}

func (h *Host) inPanel(frame, method string, members map[string]any) {
	h.t.Helper()
	if h.framed {
		members["type"] = frame
		h.send(members)
	} else {
		h.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": members})
	}
	h.settle()
}

// Publish says something on a topic, to the extension if it has subscribed to it.
func (h *Host) Publish(topic string, data any) {
	h.mu.Lock()
	ids := []int{}
	for id, known := range h.topics {
		if known == topic {
			ids = append(ids, id)
		}
	}
	h.mu.Unlock()
	for _, id := range ids {
		told := map[string]any{"method": "eventBus/event", "params": map[string]any{"topic": topic, "subscriptionId": id, "data": data}}
		if h.framed {
			told["type"] = "ext_notify"
		} else {
			told["jsonrpc"] = "2.0"
		}
		h.send(told)
	}
}

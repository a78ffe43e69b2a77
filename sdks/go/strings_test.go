package hilt_test

// The strings by which a transcript's player moves an extension: handlers that wait for what they are to do, and what each
// step of the transcript means in the public API.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	hilt "hilt-sdk"
)

// visit is a handler at work: it does what it is told until it is told to return.
type visit struct {
	call     *hilt.Call
	reply    *hilt.Reply
	question obj
	orders   chan func()
	answer   chan outcome
}

type outcome struct {
	value any
	err   error
}

// wait is what every handler does.
func (p *player) wait(v *visit) (any, error) {
	v.orders, v.answer = make(chan func()), make(chan outcome)
	select {
	case p.visits <- v:
	case <-p.over:
	}
	for {
		select {
		case order := <-v.orders:
			order()
		case out := <-v.answer:
			return out.value, out.err
		case <-p.over:
			return nil, nil
		}
	}
}

// waitFor is wait for a handler that returns a value of a type.
func waitFor[T any](p *player, v *visit) (T, error) {
	value, err := p.wait(v)
	typed, _ := value.(T)
	return typed, err
}

func (p *player) do(v *visit, order func()) {
	if v == nil {
		order()
		return
	}
	done := make(chan struct{})
	v.orders <- func() {
		order()
		close(done)
	}
	<-done
}

func str(from obj, key string) string {
	text, _ := from[key].(string)
	return text
}

func number(from obj, key string) int {
	value, _ := from[key].(json.Number)
	whole, _ := value.Int64()
	return int(whole)
}

func texts(from obj, key string) []string {
	all := []string{}
	list, _ := from[key].([]any)
	for _, one := range list {
		all = append(all, fmt.Sprint(one))
	}
	return all
}

func (p *player) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// register registers what a step says.
func (p *player) register(said obj) {
	kind, members := str(said, "kind"), said
	if !p.framed {
		kind, members = "", said["params"].(obj)
	}
	options := []hilt.HandlerOption{}
	if name := str(members, "name"); name != "" {
		options = append(options, hilt.Named(name))
	}
	if _, there := members["priority"]; there {
		options = append(options, hilt.Priority(number(members, "priority")))
	}
	switch str(said, "type") + kind + str(said, "method") {
	case "hello":
	case "register_tool", "register/tool":
		p.registerTool(members)
	case "register_command", "register/command":
		more := []hilt.CommandOption{}
		if members["immediate"] == true {
			more = append(more, hilt.Immediate())
		}
		p.check(p.ext.Command(str(members, "name"), str(members, "description"), func(call *hilt.Call, _ string) (hilt.Action, error) {
			return waitFor[hilt.Action](p, &visit{call: call})
		}, more...))
	case "subscribe":
		for _, event := range texts(said, "events") {
			p.check(p.ext.On(event, func(event *hilt.Event) error {
				p.hear("event " + event.Name)
				return nil
			}))
		}
		p.intercept(texts(said, "intercept"))
	case "registershortcut", "register/shortcut":
		p.check(p.ext.Shortcut(str(members, "key"), str(members, "description"), func(call *hilt.Call) (hilt.Action, error) {
			return waitFor[hilt.Action](p, &visit{call: call})
		}))
	case "registerprompt_section", "register/promptSection":
		p.check(p.ext.PromptSection(str(members, "title"), str(members, "content"), hilt.Order(number(members, "order")),
			hilt.TokenHint(number(members, "tokenHint"))))
	case "registermessage_hook", "register/messageHook":
		first := p.hooked()
		p.check(p.ext.MessageHook(func(context.Context, string) (string, error) {
			if !first {
				return "", nil
			}
			return waitFor[string](p, &visit{})
		}, options...))
	case "registerinput_transformer", "register/inputTransformer":
		p.check(p.ext.InputTransformer(func(context.Context, string) (string, bool, error) {
			out, err := waitFor[obj](p, &visit{})
			return str(out, "output"), out["handled"] == true, err
		}, options...))
	case "registercompactor", "register/compactor":
		p.check(p.ext.Compactor(number(members, "threshold"), func(context.Context, []hilt.Message) ([]hilt.Message, error) {
			return waitFor[[]hilt.Message](p, &visit{})
		}, options...))
	case "registerinterceptor", "register/interceptor":
		events := texts(members, "events")
		if len(events) == 0 {
			events = []string{"tool_call", "tool_result"}
		}
		p.intercept(events, options...)
	case "registerevent_handler", "register/eventHandler":
		events := texts(members, "events")
		if len(events) == 0 {
			events = []string{hilt.EveryEvent}
		}
		for _, event := range events {
			p.check(p.ext.On(event, func(*hilt.Event) error {
				_, err := p.wait(&visit{})
				return err
			}, options...))
		}
	case "registerprovider", "register/provider":
		p.registerProvider(members)
	default:
		p.t.Fatalf("nobody knows how to register %v", said)
	}
}

// hooked tells whether this is the first hook: all are run for one question, and one of them answers.
func (p *player) hooked() bool {
	first := p.call == ""
	p.call = "hooked"
	return first
}

func (p *player) registerTool(members obj) {
	schema, _ := members["schema"].(obj)
	if !p.framed {
		schema, _ = members["parameters"].(obj)
	}
	options := []hilt.ToolOption{hilt.WithSchema(schema)}
	if members["deferred"] == true {
		options = append(options, hilt.Deferred())
	}
	if members["interruptBehavior"] == "block" {
		options = append(options, hilt.Uninterruptible())
	}
	run := func(call *hilt.Call, _ json.RawMessage) (hilt.Result, error) {
		return waitFor[hilt.Result](p, &visit{call: call})
	}
	p.check(hilt.Tool(p.ext, str(members, "name"), str(members, "description"), run, options...))
}

func (p *player) registerProvider(members obj) {
	encoded, _ := json.Marshal(members["models"])
	var models []hilt.Model
	p.check(json.Unmarshal(encoded, &models))
	p.check(p.ext.Provider(str(members, "api"), models, func(_ context.Context, _ *hilt.ProviderRequest, reply *hilt.Reply) error {
		_, err := p.wait(&visit{reply: reply})
		return err
	}))
}

func (p *player) intercept(events []string, options ...hilt.HandlerOption) {
	decide := func() (hilt.Verdict, error) { return waitFor[hilt.Verdict](p, &visit{}) }
	for _, event := range events {
		switch event {
		case "tool_call":
			p.check(p.ext.InterceptToolCall(func(*hilt.ToolCall) (hilt.Verdict, error) { return decide() }, options...))
		case "turn_start":
			p.check(p.ext.InterceptTurnStart(func(*hilt.TurnStart) (hilt.Verdict, error) { return decide() }, options...))
		case "assistant_message":
			p.check(p.ext.InterceptAssistantMessage(func(*hilt.AssistantMessage) (hilt.Verdict, error) { return decide() }, options...))
		case "before_agent_start":
			p.check(p.ext.InterceptAgentStart(func(*hilt.AgentStart) (hilt.Verdict, error) { return decide() }, options...))
		case "tool_result":
			p.check(p.ext.InterceptToolResult(func(*hilt.ToolResult) (hilt.Verdict, error) { return decide() }, options...))
		default:
			p.t.Fatalf("nobody can intercept %s", event)
		}
	}
}

// expect has the extension do what a step says, and looks at what it says then.
func (p *player) expect(i int, said obj) {
	p.t.Helper()
	method := str(said, "method")
	params, _ := said["params"].(obj)
	switch {
	case said["type"] == "shutdown_ack":
	case p.isAnswer(said):
		said = p.answer(said)
	case said["type"] == "call_tool" || said["type"] == "host_request" || !p.framed && said["id"] != nil:
		p.ask(said, method, params)
		return
	case said["type"] == "call_tool_cancel":
		p.cancels[str(said, "id")]()
		said["id"] = p.own[str(said, "id")]
	case method == "$/cancelRequest":
		p.cancels[fmt.Sprint(params["id"])]()
		params["id"] = p.own[fmt.Sprint(params["id"])]
	case method == "provider/delta":
		p.deliver(i, params)
	case strings.HasPrefix(method, "register/") || strings.HasPrefix(str(said, "type"), "register"):
		p.register(said)
	default:
		p.tellHost(said)
	}
	p.match(said, p.nextBut(said))
}

// nextBut is the next line. Pieces of a provider's answer are free: the answer itself has them all.
func (p *player) nextBut(wanted obj) obj {
	for {
		line := p.next(fmt.Sprint(wanted))
		if line["method"] != "provider/delta" || p.fits(wanted, line) == nil {
			return line
		}
	}
}

func (p *player) isAnswer(said obj) bool {
	switch said["type"] {
	case "tool_result", "command_response", "event_intercept_response", "ext_response":
		return true
	}
	return !p.framed && said["id"] != nil && said["method"] == nil
}

// tellHost has the extension tell the host something.
func (p *player) tellHost(said obj) {
	method := str(said, "type")
	params, _ := said["params"].(obj)
	if method == "host_notify" || method == "" {
		method = str(said, "method")
	} else {
		params = said
	}
	switch method {
	case "notify":
		p.check(p.ext.Notify(str(params, "message"), hilt.Level(str(params, "level"))))
	case "clear_notes":
		p.check(p.ext.ClearNotes())
	case "showMessage":
		p.check(p.ext.Show(str(params, "text")))
	case "log":
		p.check(p.ext.Log(str(params, "message"), hilt.Level(str(params, "level"))))
	case "submit", "submit_slash":
		p.check(p.ext.Submit(str(params, "text")))
	case "sendMessage":
		p.check(p.ext.Submit(str(params, "content")))
	case "steer":
		p.check(p.ext.Steer(str(params, "content")))
	case "abort", "abortWithMarker":
		p.check(p.ext.Abort(str(params, "reason")))
	case "setWidget":
		p.check(p.ext.Widget(str(params, "key"), str(params, "content"), hilt.Placement(str(params, "placement"))))
	case "setStatus":
		p.check(p.ext.Status(str(params, "key"), str(params, "text")))
	case "setInputText":
		p.check(p.ext.SetInput(str(params, "text")))
	case "showOverlay":
		look := hilt.Overlay{Title: str(params, "title"), Anchor: str(params, "anchor"), Width: str(params, "width")}
		p.check(p.ext.ShowOverlay(str(params, "key"), str(params, "content"), look))
	case "closeOverlay":
		p.check(p.ext.CloseOverlay(str(params, "key")))
	case "tool_progress", "tool/progress":
		call := p.calling(params)
		p.do(call, func() { p.check(call.call.Progress(str(params, "text"))) })
	case "open_panel":
		spec := said["panel"].(obj)
		p.check(p.ext.Open(p.panel(str(spec, "id"), spec)))
	case "panel/open":
		p.check(p.ext.Open(p.panel(str(params, "panel_id"), params)))
	case "panel_render", "panel/render":
		p.check(p.ext.Update(p.panel(str(params, "panel_id"), params)))
	case "panel_close", "panel/close":
		p.check(p.ext.Close(p.panels[str(params, "panel_id")]))
	default:
		p.t.Fatalf("nobody knows how to tell %s", method)
	}
}

// calling is the tool call that a piece of progress is of.
func (p *player) calling(params obj) *visit {
	id := fmt.Sprint(p.filled(params["id"])) + str(params, "callId")
	for _, v := range p.open {
		if v.call != nil && strings.HasSuffix(id, v.call.ID) {
			return v
		}
	}
	p.t.Fatalf("there is no call %s", id)
	return nil
}

// scriptPanel shows what the transcript says.
type scriptPanel struct {
	p             *player
	id            string
	mu            sync.Mutex
	title, footer string
	lines         []string
}

func (p *player) panel(id string, spec obj) *scriptPanel {
	panel := p.panels[id]
	if panel == nil {
		panel = &scriptPanel{p: p, id: id}
		p.panels[id] = panel
	}
	panel.mu.Lock()
	defer panel.mu.Unlock()
	if title := str(spec, "title"); title != "" {
		panel.title = title
	}
	panel.lines, panel.footer = texts(spec, "lines"), str(spec, "footer")
	return panel
}

func (s *scriptPanel) PanelID() string { return s.id }

func (s *scriptPanel) Title() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.title
}

func (s *scriptPanel) Footer() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.footer
}

func (s *scriptPanel) Render(int, int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

func (s *scriptPanel) OnKey(key, text string)     { s.p.hear("key " + key + text) }
func (s *scriptPanel) OnResize(width, height int) { s.p.hear(fmt.Sprintf("size %d %d", width, height)) }
func (s *scriptPanel) OnClose()                   { s.p.hear("closed") }

// deliver has a provider say a piece.
func (p *player) deliver(i int, params obj) {
	request := fmt.Sprint(p.filled(params["requestId"]))
	for _, v := range p.open {
		asked, _ := v.question["params"].(obj)
		if v.reply == nil || fmt.Sprint(asked["requestId"]) != request {
			continue
		}
		tool, _ := params["tool"].(obj)
		p.do(v, func() {
			switch params["type"] {
			case "text_delta":
				p.check(v.reply.Text(str(params, "delta")))
			case "thinking_delta":
				p.check(v.reply.Thinking(str(params, "delta")))
			case "toolcall_delta":
				p.complete(i, v)
				p.check(v.reply.ToolCallDelta(p.named(tool), str(tool, "name"), str(params, "delta")))
			case "toolcall_end":
				p.check(v.reply.ToolCall(str(tool, "name"), json.RawMessage(str(tool, "arguments")), str(tool, "id")))
			}
		})
		v.question["said"] = append(said(v), params)
		return
	}
	p.t.Fatalf("there is no answer %s", request)
}

// complete says what is left of a text before a call: this package puts the answer together from what was said, so pieces
// that the transcript leaves out have to be there.
func (p *player) complete(i int, v *visit) {
	for _, later := range p.steps[i:] {
		line, _ := later["ext"].(obj)
		result, _ := line["result"].(obj)
		if message, is := result["message"].(obj); is {
			for _, one := range message["content"].([]any) {
				block := one.(obj)
				rest := strings.TrimPrefix(str(block, "text"), spoken(v)["text"])
				if block["text"] != nil && rest != "" {
					p.check(v.reply.Text(rest))
					v.question["said"] = append(said(v), obj{"type": "text_delta", "delta": rest})
				}
			}
			return
		}
	}
}

// spoken is all that was said of each kind.
func spoken(v *visit) map[string]string {
	all := map[string]string{}
	for _, piece := range said(v) {
		all[strings.TrimSuffix(str(piece, "type"), "_delta")] += str(piece, "delta")
	}
	return all
}

// named is the id of a call in pieces, which only the first piece tells.
func (p *player) named(tool obj) string {
	if id := str(tool, "id"); id != "" {
		p.call = id
	}
	return p.call
}

func said(v *visit) []obj {
	all, _ := v.question["said"].([]obj)
	return all
}

// say has a provider say all of a message that it has not said yet.
func (p *player) say(v *visit, message obj) {
	made := map[string]bool{}
	for _, piece := range said(v) {
		if tool, is := piece["tool"].(obj); is && piece["type"] == "toolcall_end" {
			made[str(tool, "id")] = true
		}
	}
	for _, one := range message["content"].([]any) {
		block := one.(obj)
		switch {
		case block["thinking"] != nil:
			p.check(v.reply.Thinking(strings.TrimPrefix(str(block, "thinking"), spoken(v)["thinking"])))
		case block["text"] != nil:
			p.check(v.reply.Text(strings.TrimPrefix(str(block, "text"), spoken(v)["text"])))
		case !made[str(block, "id")]:
			p.check(v.reply.ToolCall(str(block, "name"), block["arguments"], str(block, "id")))
		}
	}
	if usage, is := message["usage"].(obj); is {
		v.reply.Usage(hilt.TokenUsage{Input: number(usage, "inputTokens"), Output: number(usage, "outputTokens")})
	}
}

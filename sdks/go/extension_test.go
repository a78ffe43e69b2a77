package hilt_test

// What authors rely on, against the host in memory, in both dialects.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	hilt "hilt-sdk"
	"hilt-sdk/hilttest"
)

func inBoth(t *testing.T, check func(t *testing.T, options hilttest.Options)) {
	for _, dialect := range []hilt.Dialect{hilt.Frames, hilt.JSONRPC} {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			check(t, hilttest.Options{Dialect: dialect})
		})
	}
}

func TestCommandsSayWhatIsToBeDone(t *testing.T) {
	inBoth(t, func(t *testing.T, options hilttest.Options) {
		ext := hilt.New("demo", "1.0.0")
		ext.Command("/do", "do it", func(call *hilt.Call, args string) (hilt.Action, error) {
			switch args {
			case "show it":
				return hilt.Showf("it is %d", 7), nil
			case "insert":
				return hilt.Insert("git status"), nil
			case "prompt":
				return hilt.Prompt("what is here?"), nil
			case "tool":
				return hilt.ToolPrompt("read", obj{"path": "a"}, "explain it"), nil
			case "panic":
				panic("oh")
			}
			return hilt.Nothing(), errors.New("do what?")
		})
		ext.Shortcut("ctrl+g", "go", func(*hilt.Call) (hilt.Action, error) { return hilt.Show("went"), nil })
		options.Answers = map[string]any{"host/executeTool": "seven"}
		host := hilttest.New(t, ext, options)
		prompted := hilttest.Action{Tool: "read", Args: obj{"path": "a"}, Prompt: "explain it"}
		if options.Dialect == hilt.JSONRPC {
			prompted = hilttest.Action{Prompt: "explain it\n\nread returned:\nseven"}
		}
		for line, want := range map[string]hilttest.Action{
			"/do show it": {Shown: "it is 7"},
			"/do insert":  {Inserted: "git status"},
			"/do prompt":  {Prompt: "what is here?"},
			"/do tool":    prompted,
			"/do panic":   {Error: "panic: oh"},
			"/do":         {Error: "do what?"},
			"/dont":       {Error: "unknown command: dont"},
		} {
			if got := host.Run(line); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %+v", line, got)
			}
		}
		if got := host.Press("ctrl+g"); got.Shown != "went" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestAGuardThatFailsRefuses(t *testing.T) {
	inBoth(t, func(t *testing.T, options hilttest.Options) {
		ext := hilt.New("guard", "1.0.0")
		asked := 0
		ext.InterceptToolCall(func(call *hilt.ToolCall) (hilt.Verdict, error) {
			asked++
			switch call.Text("command") {
			case "rm":
				return hilt.Block("nothing is deleted here"), nil
			case "fail":
				return hilt.Allow(), errors.New("lost my list")
			case "panic":
				panic("oh")
			case "wrong":
				return hilt.Replace("text"), nil
			case "change":
				call.Args["timeout"] = 60
				return hilt.Rewrite(call.Args), nil
			}
			return hilt.Allow(), nil
		})
		ext.InterceptToolCall(func(call *hilt.ToolCall) (hilt.Verdict, error) {
			if call.Args["timeout"] == nil {
				return hilt.Allow(), nil
			}
			return hilt.Rewrite(obj{"saw": call.Args["timeout"], "big": call.Args["big"]}), nil
		})
		ext.InterceptTurnStart(func(turn *hilt.TurnStart) (hilt.Verdict, error) { return hilt.Allow(), errors.New("no calendar") })
		ext.InterceptAssistantMessage(func(message *hilt.AssistantMessage) (hilt.Verdict, error) {
			return hilt.Replace(strings.ReplaceAll(message.Text, "1234", "****")), nil
		})
		ext.InterceptAgentStart(func(*hilt.AgentStart) (hilt.Verdict, error) { return hilt.Allow(), errors.New("no idea") })
		ext.InterceptToolResult(func(result *hilt.ToolResult) (hilt.Verdict, error) {
			if result.Text() == "fail" {
				return hilt.Allow(), errors.New("no idea")
			}
			return hilt.Replace("[" + result.Text() + "]"), nil
		})
		host := hilttest.New(t, ext, options)
		for command, reason := range map[string]string{
			"rm":    "nothing is deleted here",
			"fail":  "guard's guard failed: lost my list",
			"panic": "guard's guard failed: panic: oh",
			"wrong": `guard's guard failed: a verdict of "replace" does not go with tool_call`,
		} {
			if got := host.Intercept("bash", obj{"command": command}); !got.Blocked || got.Reason != reason {
				t.Errorf("%s: got %+v", command, got)
			}
		}
		before := asked
		if got := host.Intercept("bash", obj{"command": "ls"}); got.Blocked || got.Changed || asked != before+1 {
			t.Errorf("asked %d times: got %+v", asked-before, got)
		}
		got := host.Intercept("bash", obj{"command": "change", "big": json.Number("12345678901234567890")})
		if fmt.Sprint(got.Args) != "map[big:12345678901234567890 saw:60]" {
			t.Errorf("got %+v", got)
		}
		if got := host.InterceptTurn(1); !got.Blocked || got.Reason != "guard's guard failed: no calendar" {
			t.Errorf("got %+v", got)
		}
		if got := host.InterceptMessage("My key is 1234."); got.Text != "My key is ****." {
			t.Errorf("got %+v", got)
		}
		if got := host.InterceptPrompt("Be kind."); got.Blocked || got.Changed {
			t.Errorf("got %+v", got)
		}
		if got := host.InterceptResult("read", "41"); got.Text != "[41]" {
			t.Errorf("got %+v", got)
		}
		if got := host.InterceptResult("read", "fail"); got.Blocked || got.Changed {
			t.Errorf("got %+v", got)
		}
	})
}

func TestEventsAreToldInOrderByTheSameNames(t *testing.T) {
	inBoth(t, func(t *testing.T, options hilttest.Options) {
		ext := hilt.New("demo", "1.0.0")
		var mu sync.Mutex
		heard := []string{}
		hear := func(event *hilt.Event) error {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, fmt.Sprint(event.Name, event.Step, event.Text, event.Stop, event.ToolName, event.ToolArgs["a"]))
			if event.Name == "turn_start" {
				panic("not me")
			}
			return nil
		}
		for _, name := range []string{"turn_start", "assistant_message", "tool_call", "turn_end", "user_prompt_submit"} {
			ext.On(name, hear)
		}
		host := hilttest.New(t, ext, options)
		host.Emit("user_prompt_submit", obj{"text": "hi"})
		if options.Dialect == hilt.JSONRPC {
			if told, _ := json.Marshal(host.Registered("event_handler")); !strings.Contains(string(told), "EventAgentStart") {
				t.Errorf("nobody could count steps: %s", told)
			}
			host.Method("event/dispatch", obj{"type": "EventAgentStart", "data": obj{}})
			if _, err := host.Method("event/dispatch", obj{"type": "EventTurnStart", "data": obj{}}); err == nil {
				t.Error("a handler that failed is not told")
			}
		} else {
			host.Emit("turn_start", obj{"step": 1})
		}
		host.Emit("assistant_message", obj{"text": "hello"})
		host.Emit("tool_call", obj{"tool_id": "c1", "tool_name": "add", "tool_args": obj{"a": 1}})
		host.Emit("turn_end", obj{"stop": "tool_use"})
		want := []string{
			"user_prompt_submit0hi<nil>", "turn_start1<nil>", "assistant_message0hello<nil>", "tool_call0add1",
			"turn_end0tool_use<nil>",
		}
		if len(heard) != len(want) {
			t.Fatalf("heard %q", heard)
		}
		for i, word := range heard {
			if heard[i] = strings.ReplaceAll(word, " ", ""); heard[i] != want[i] {
				t.Errorf("got %q, not %q", heard[i], want[i])
			}
		}
	})
}

type counter struct {
	ext    *hilt.Extension
	count  int
	size   string
	closed chan struct{}
}

func (c *counter) Title() string              { return "Counter" }
func (c *counter) Footer() string             { return "+ adds one" }
func (c *counter) Render(w, h int) []string   { return []string{fmt.Sprint(c.count, c.size)} }
func (c *counter) OnResize(width, height int) { c.size = fmt.Sprintf(" %dx%d", width, height) }
func (c *counter) OnClose()                   { close(c.closed) }
func (c *counter) OnKey(key, text string) {
	switch key + text {
	case "rune+":
		c.count++
	case "end":
		c.count = 0
		c.ext.Close(c)
	}
}

func TestAPanelIsDrawnAnewWhenItLooksOtherwise(t *testing.T) {
	inBoth(t, func(t *testing.T, options hilttest.Options) {
		ext := hilt.New("demo", "1.0.0")
		panel := &counter{ext: ext, closed: make(chan struct{})}
		ext.Command("count", "", func(*hilt.Call, string) (hilt.Action, error) { return hilt.OpenPanel(panel), nil })
		host := hilttest.New(t, ext, options)
		opened := host.Run("/count").Panel
		for range 20 {
			host.Key(opened, "+")
		}
		host.Key(opened, "down")
		if opened.Title() != "Counter" || opened.Footer() != "+ adds one" || opened.Text() != "20" {
			t.Errorf("it shows %s %s %s", opened.Title(), opened.Text(), opened.Footer())
		}
		host.Resize(opened, 72, 18)
		if opened.Text() != "20 72x18" {
			t.Errorf("it shows %s", opened.Text())
		}
		host.Key(opened, "end")
		if opened.IsOpen() || len(host.Panels()) > 0 {
			t.Error("it is still open")
		}
		drawn := 0
		for _, said := range host.Said() {
			if said["type"] == "panel_render" || said["method"] == "panel/render" {
				drawn++
			}
		}
		if drawn != 21 {
			t.Errorf("drawn %d times", drawn)
		}
		opened = host.Run("/count").Panel
		host.ClosePanel(opened)
		<-panel.closed
	})
}

func TestHooksTransformersCompactorsAndProvidersAreAsked(t *testing.T) {
	inBoth(t, func(t *testing.T, options hilttest.Options) {
		ext := hilt.New("demo", "1.0.0")
		for i, added := range []string{"second", "first"} {
			ext.MessageHook(func(context.Context, string) (string, error) { return added, nil }, hilt.Priority(9-i))
		}
		ext.InputTransformer(func(_ context.Context, text string) (string, bool, error) {
			return strings.ReplaceAll(text, "@me", "Ada"), text == "note this", nil
		})
		ext.Compactor(0, func(_ context.Context, messages []hilt.Message) ([]hilt.Message, error) {
			return append([]hilt.Message{hilt.NewMessage("user", "in short: "+messages[0].Text())}, messages[2:]...), nil
		})
		ext.Provider("demo-api", []hilt.Model{{ID: "m1"}}, func(_ context.Context, request *hilt.ProviderRequest, reply *hilt.Reply) error {
			if request.Text() == "fail" {
				return errors.New("overloaded")
			}
			reply.Text("Let ")
			reply.Text("me see.")
			reply.ToolCall("add", obj{"a": 1}, "")
			reply.Usage(hilt.TokenUsage{Input: 5})
			return nil
		})
		host := hilttest.New(t, ext, options)
		if got := host.Hook("hi"); got != "first\nsecond" {
			t.Errorf("got %q", got)
		}
		if got, handled := host.Transform("hi @me"); got != "hi Ada" || handled {
			t.Errorf("got %q", got)
		}
		if _, handled := host.Transform("note this"); !handled {
			t.Error("it was sent")
		}
		said := hilt.NewMessage("assistant", "hello")
		shorter := host.Compact(hilt.NewMessage("user", "hi"), said, said)
		if len(shorter) != 2 || shorter[0].Text() != "in short: hi" || shorter[1].Role != "assistant" {
			t.Errorf("got %+v", shorter)
		}
		answer := host.Stream("add", hilttest.StreamOptions{API: "demo-api"})
		content, _ := json.Marshal(answer.Message["content"])
		want := `[{"text":"Let me see.","type":"text"},{"arguments":{"a":1},"id":"call_1","name":"add","type":"tool_call"}]`
		if got := strings.Replace(string(content), answer.Message["content"].([]any)[1].(obj)["id"].(string), "call_1", 1); got != want {
			t.Errorf("got %s", got)
		}
		if answer.Message["stopReason"] != "toolUse" || answer.Message["model"] != "m1" || len(host.Pieces()) != 3 {
			t.Errorf("got %v", answer)
		}
		if answer := host.Stream("fail", hilttest.StreamOptions{API: "demo-api"}); answer.Error != "overloaded" {
			t.Errorf("got %v", answer)
		}
	})
}

// piglet asks once for each of them, and each time all are run.
func TestInPigletAllHooksAndHandlersAreOne(t *testing.T) {
	ext := hilt.New("demo", "1.0.0")
	for i, name := range []string{"one", "two"} {
		ext.MessageHook(func(context.Context, string) (string, error) { return name, nil }, hilt.Named(name), hilt.Priority(9-i))
		ext.On([]string{"EventTurnStart", "turn_end"}[i], func(*hilt.Event) error { return nil }, hilt.Named(name))
	}
	host := hilttest.New(t, ext, hilttest.Options{Host: "piglet"})
	hooks, handlers := host.Registered("message_hook"), host.Registered("event_handler")
	if len(hooks) != 1 || hooks[0]["name"] != "two" || host.Hook("hi") != "two\none" {
		t.Errorf("got %v", hooks)
	}
	if len(handlers) != 1 || fmt.Sprint(handlers[0]["events"]) != "[EventTurnStart EventTurnEnd]" {
		t.Errorf("got %v", handlers)
	}
}

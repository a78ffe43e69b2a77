// Everything that an extension can do, once: the same program as demo.py and demo.mjs, for the table of all SDKs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	hilt "hilt-sdk"
)

var (
	ext    = hilt.New("demo", "1.0.0")
	mu     sync.Mutex
	heard  []string
	closed atomic.Bool
)

// Tools

type none struct{}

func tools() {
	hilt.Tool(ext, "echo", "Say it again.", func(call *hilt.Call, args struct {
		Text  string `json:"text" help:"what to say"`
		Times int    `json:"times" help:"how often" default:"1"`
	}) (string, error) {
		words := []string{}
		for number := range args.Times {
			call.Progress(fmt.Sprintf("%d\n", number+1))
			words = append(words, args.Text)
		}
		return strings.Join(words, " "), nil
	})
	hilt.Tool(ext, "slow", "Wait until it is cancelled.", func(call *hilt.Call, _ none) (string, error) {
		call.OnCancel(func() { ext.Notify("slow was cancelled") })
		call.Progress("waiting\n")
		if call.Wait(30 * time.Second) {
			return "stopped", nil
		}
		return "waited", nil
	})
	hilt.Tool(ext, "picture", "Show a picture.", func(*hilt.Call, none) (hilt.Content, error) {
		return hilt.Image([]byte("\x89PNG\r\n\x1a\n"))
	})
	hilt.Tool(ext, "told", "Fail as one knows how to.", func(*hilt.Call, none) (string, error) {
		return "", &hilt.ToolError{Message: "no such city", Code: "NO_CITY", Hint: "try Rome"}
	})
	hilt.Tool(ext, "broken", "Fail as nobody expects.", func(*hilt.Call, none) (string, error) {
		return "", errors.New("boom")
	})
	hilt.Tool(ext, "data", "Give data.", func(*hilt.Call, none) (map[string]int, error) {
		return map[string]int{"sum": 3}, nil
	})
	hilt.Tool(ext, "nan", "Give what JSON cannot hold.", func(*hilt.Call, none) (map[string]float64, error) {
		return map[string]float64{"x": math.NaN()}, nil
	})
	hilt.Tool(ext, "nothing", "Give nothing.", func(*hilt.Call, none) (any, error) { return nil, nil })
	hilt.Tool(ext, "relay", "Read a file by another tool.", func(call *hilt.Call, args struct {
		Path string `json:"path"`
	}) (string, error) {
		result, err := call.CallTool("read", args)
		return "read: " + strings.TrimSpace(result.All()), err
	})
	hilt.Tool(ext, "chatter", "Print to standard output, and have a program do so.", func(*hilt.Call, none) (string, error) {
		fmt.Println("printed by demo")
		child := exec.Command("echo", "echoed by demo")
		child.Stdout = os.Stdout
		return "quiet", child.Run()
	})
}

// Commands

type counter struct {
	count int
	typed string
}

func (c *counter) Title() string  { return "Counter" }
func (c *counter) Footer() string { return "q closes" }

func (c *counter) Render(width, height int) []string {
	return []string{fmt.Sprint("count ", c.count), "typed " + c.typed, fmt.Sprintf("%d x %d", width, height)}
}

func (c *counter) OnKey(key, text string) {
	switch {
	case key == "up":
		c.count++
	case text == "q":
		ext.Close(c)
	default:
		c.typed += text
	}
}

func (c *counter) OnClose() { ext.Notify("the counter was closed") }

func command(name, about string, run func(args string) (hilt.Action, error)) {
	ext.Command(name, about, func(_ *hilt.Call, args string) (hilt.Action, error) { return run(args) })
}

func commands() {
	command("show", "show words", func(args string) (hilt.Action, error) { return hilt.Show("shown " + args), nil })
	command("nothing", "do nothing", func(string) (hilt.Action, error) { return hilt.Nothing(), nil })
	command("insert", "insert words", func(string) (hilt.Action, error) { return hilt.Insert("inserted words"), nil })
	command("prompt", "prompt the model", func(string) (hilt.Action, error) { return hilt.Prompt("prompted words"), nil })
	command("explain", "have a file explained", func(args string) (hilt.Action, error) {
		return hilt.ToolPrompt("read", map[string]any{"path": args}, "Explain this."), nil
	})
	command("count", "open a panel", func(string) (hilt.Action, error) { return hilt.OpenPanel(&counter{}), nil })
	command("fail", "fail", func(string) (hilt.Action, error) { return hilt.Nothing(), &hilt.ToolError{Message: "it broke"} })
	command("say", "say things to the user", func(string) (hilt.Action, error) {
		ext.Notify("a note", hilt.LevelSuccess)
		ext.Show("a text")
		if err := ext.SetInput("an input"); err != nil {
			return hilt.Nothing(), err
		}
		ext.Widget("w", "a widget")
		ext.ShowOverlay("o", "an overlay", hilt.Overlay{Title: "Look"})
		ext.Status("s", "a word")
		ext.CloseOverlay("o")
		return hilt.Nothing(), ext.Widget("w", "")
	})
	command("submit", "send a prompt", func(string) (hilt.Action, error) { return hilt.Nothing(), ext.Submit("submitted words") })
	command("keep", "keep data", func(string) (hilt.Action, error) {
		file, err := os.OpenFile(filepath.Join(ext.DataDir(), "kept.txt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return hilt.Nothing(), err
		}
		defer file.Close()
		_, err = file.WriteString("kept\n")
		return hilt.Show(filepath.Base(ext.DataDir())), err
	})
	command("events", "tell what has happened", func(string) (hilt.Action, error) {
		mu.Lock()
		defer mu.Unlock()
		told := strings.Join(append([]string{"heard"}, heard...), "; ")
		heard = nil
		return hilt.Show(told), nil
	})
	command("close", "let no turn begin", func(args string) (hilt.Action, error) {
		closed.Store(args == "on")
		return hilt.Nothing(), nil
	})
	ext.Shortcut("ctrl+g", "a key", func(*hilt.Call) (hilt.Action, error) { return hilt.Show("pressed"), nil })
}

func asking() {
	ext.Command("host", "ask the host", func(call *hilt.Call, _ string) (hilt.Action, error) {
		if err := ext.Host().SetSessionTitle(call.Context(), "A title"); err != nil {
			return hilt.Nothing(), err
		}
		title, err := ext.Host().SessionTitle(call.Context())
		if err != nil {
			return hilt.Nothing(), err
		}
		chat, err := ext.Host().Chat(call.Context(), hilt.ChatRequest{Text: "2+2?"})
		if err != nil {
			return hilt.Nothing(), err
		}
		settings, err := ext.Settings(call.Context(), "units")
		if settings["units"] == nil {
			settings = map[string]any{"units": "none"}
		}
		return hilt.Showf("%s | %s | %v | %s", title, chat.Text, settings["units"], ext.HostInfo().Name), err
	})
	ext.Command("ask", "ask the user", func(call *hilt.Call, _ string) (hilt.Action, error) {
		chosen, err := ext.Host().Ask(call.Context(), "Which?", "this", "that")
		return hilt.Show("you chose " + chosen), err
	})
}

// What happens, and what may not

func happened(event *hilt.Event) error {
	what := event.Text
	switch event.Name {
	case "turn_start":
		what = fmt.Sprint(event.Step)
	case "tool_call", "tool_result":
		what = event.ToolName
	case "turn_end":
		what = event.Stop
	}
	mu.Lock()
	defer mu.Unlock()
	heard = append(heard, event.Name+":"+what)
	return nil
}

func interceptors() {
	ext.InterceptToolCall(func(asked *hilt.ToolCall) (hilt.Verdict, error) {
		if asked.Tool == "echo" {
			switch asked.Text("text") {
			case "explode":
				return hilt.Allow(), &hilt.ToolError{Message: "it exploded"}
			case "forbidden":
				return hilt.Block("that is forbidden"), nil
			case "change me":
				return hilt.Rewrite(map[string]any{"text": "changed"}), nil
			}
		}
		return hilt.Allow(), nil
	})
	ext.InterceptTurnStart(func(*hilt.TurnStart) (hilt.Verdict, error) {
		if closed.Load() {
			return hilt.Block("no turns now"), nil
		}
		return hilt.Allow(), nil
	})
	ext.InterceptAssistantMessage(func(asked *hilt.AssistantMessage) (hilt.Verdict, error) {
		if asked.Text == "say nothing" {
			return hilt.Block("nothing to say"), nil
		}
		if strings.Contains(asked.Text, "1234") {
			return hilt.Replace(strings.ReplaceAll(asked.Text, "1234", "****")), nil
		}
		return hilt.Allow(), nil
	})
	ext.InterceptAgentStart(func(asked *hilt.AgentStart) (hilt.Verdict, error) {
		if strings.Contains(asked.SystemPrompt, "Be brief.") {
			return hilt.Allow(), nil
		}
		return hilt.Replace(asked.SystemPrompt + "\nBe brief."), nil
	})
	ext.InterceptToolResult(func(asked *hilt.ToolResult) (hilt.Verdict, error) {
		switch {
		case asked.Tool != "echo":
		case asked.Text() == "whisper":
			return hilt.ReplaceResult(hilt.Result{Text: "too quiet", IsError: true}), nil
		case asked.Text() == "loud":
			return hilt.Replace("LOUD"), nil
		}
		return hilt.Allow(), nil
	})
}

// Words, messages, models

func words() {
	ext.PromptSection("Demo rules", "Use echo.")
	ext.MessageHook(func(_ context.Context, text string) (string, error) {
		if strings.Contains(text, "what time") {
			return "It is noon.", nil
		}
		return "", nil
	})
	ext.InputTransformer(func(_ context.Context, text string) (string, bool, error) {
		return strings.ReplaceAll(text, "@me", "Ada"), text == "note to self", nil
	})
	ext.Compactor(0, func(_ context.Context, messages []hilt.Message) ([]hilt.Message, error) {
		return messages[len(messages)-1:], nil
	})
	models := []hilt.Model{{ID: "echo-1", Name: "Echo", ContextWindow: 8192}}
	ext.Provider("echoes", models, func(_ context.Context, request *hilt.ProviderRequest, reply *hilt.Reply) error {
		reply.Thinking("hm")
		reply.Text("you said: ")
		reply.Text(request.Text())
		if strings.Contains(request.System, "It is noon.") {
			reply.Text(" (at noon)")
		}
		reply.Usage(hilt.TokenUsage{Input: 5, Output: 2})
		return nil
	})
}

func main() {
	tools()
	commands()
	asking()
	interceptors()
	words()
	for _, event := range []string{"user_prompt_submit", "turn_start", "tool_call", "tool_result", "assistant_message", "turn_end"} {
		ext.On(event, happened)
	}
	ext.OnReady(func() error {
		_, err := ext.Host().Subscribe(context.Background(), "demo.topic", func(data json.RawMessage) {
			var said struct{ Word string }
			if json.Unmarshal(data, &said) == nil {
				ext.Notify("heard " + said.Word)
			}
		})
		return err
	})
	ext.Main()
}

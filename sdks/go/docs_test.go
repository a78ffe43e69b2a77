package hilt_test

// The blocks of Go in the documents, which are compiled here, and the names that the reference must have. A block of the
// README or the reference that is not in this file, line for line, fails the test.

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"time"

	hilt "hilt-sdk"
	"hilt-sdk/hilttest"
)

type arguments struct {
	City string `json:"city" help:"the city"`
	Days int    `json:"days,omitempty" help:"for how many days" default:"1"`
}

func weather(call *hilt.Call, args arguments) (string, error) {
	return fmt.Sprintf("%s: sunny for %d days", args.City, args.Days), nil
}

func extension() *hilt.Extension {
	ext := hilt.New("weather", "0.1.0")
	hilt.Tool(ext, "weather", "Get the weather for a city.", weather)
	return ext
}

func TestRomeIsSunny(t *testing.T) {
	host := hilttest.New(t, extension())
	if got := host.Call("weather", map[string]any{"city": "Rome"}).Text; got != "Rome: sunny for 1 days" {
		t.Errorf("got %q", got)
	}
}

func count(call *hilt.Call, args struct {
	To int `json:"to"`
}) (string, error) {
	for number := range args.To {
		call.Progress(fmt.Sprintln(number))
		if call.Wait(time.Second) {
			return "stopped", nil
		}
	}
	return "done", nil
}

func TestTheTourOfTheReadmeWorks(t *testing.T) {
	ext := hilt.New("tour", "0.1.0")
	hilt.Tool(ext, "count", "Count slowly.", count)
	ext.Command("hi", "say hello", func(call *hilt.Call, args string) (hilt.Action, error) {
		return hilt.Show("hello, " + args), nil
	})
	ext.InterceptToolCall(func(call *hilt.ToolCall) (hilt.Verdict, error) {
		if call.Tool == "bash" && strings.Contains(call.Text("command"), "rm -rf") {
			return hilt.Block("nothing is deleted here"), nil
		}
		return hilt.Allow(), nil
	})
	ext.OnReady(func() error {
		reply, err := ext.Host().Chat(context.Background(), hilt.ChatRequest{Text: "Say good morning.", Model: "small"})
		if err != nil {
			return err
		}
		return ext.Notify(reply.Text)
	})
	host := hilttest.New(t, ext, hilttest.Options{Answers: map[string]any{"host/chat": obj{"text": "Good morning!"}}})
	if got := host.Run("/hi Ada").Shown; got != "hello, Ada" {
		t.Errorf("got %q", got)
	}
	if !host.Intercept("bash", obj{"command": "rm -rf /"}).Blocked || host.Intercept("bash", obj{"command": "ls"}).Blocked {
		t.Error("the guard does not guard")
	}
	host.Await("a note", func() bool { return len(host.Notes()) == 1 && host.Notes()[0].Text == "Good morning!" })
	if got := host.Call("count", obj{"to": 0}).Text; got != "done" {
		t.Errorf("got %q", got)
	}
}

type todo struct {
	ext   *hilt.Extension
	items []string
}

func (t *todo) Title() string { return "To do" }

func (t *todo) Render(width, height int) []string { return t.items }

func (t *todo) OnKey(key, text string) {
	if key == "delete" && len(t.items) > 0 {
		t.items = t.items[1:]
	}
}

func TestTheExamplesOfTheReferenceWork(t *testing.T) {
	ext := hilt.New("kit", "0.1.0")
	hilt.Tool(ext, "read_note", "Read a note.", func(call *hilt.Call, args struct {
		Name string `json:"name"`
	}) (hilt.Result, error) {
		text, err := os.ReadFile(args.Name)
		if err != nil {
			return hilt.Result{}, &hilt.ToolError{Message: "there is no such note", Code: "FILE_NOT_FOUND", Hint: "list them first"}
		}
		return hilt.Result{Text: string(text), Structured: map[string]int{"bytes": len(text)}}, nil
	})
	list := &todo{ext: ext, items: []string{"buy milk", "call Ada"}}
	ext.Command("todo", "what is to be done", func(call *hilt.Call, args string) (hilt.Action, error) {
		return hilt.OpenPanel(list), nil
	})
	ext.On("turn_end", func(event *hilt.Event) error {
		return ext.Status("last", event.Stop)
	})
	ext.InterceptAssistantMessage(func(message *hilt.AssistantMessage) (hilt.Verdict, error) {
		if !strings.Contains(message.Text, "SECRET") {
			return hilt.Allow(), nil
		}
		return hilt.Replace(strings.ReplaceAll(message.Text, "SECRET", "[redacted]")), nil
	}, hilt.Required())
	ext.Provider("echo", []hilt.Model{{ID: "echo-1", ContextWindow: 8192}},
		func(ctx context.Context, request *hilt.ProviderRequest, reply *hilt.Reply) error {
			return reply.Text("you said: " + request.Text())
		})
	host := hilttest.New(t, ext)
	panel := host.Run("/todo").Panel
	host.Key(panel, "delete")
	if got := panel.Text(); got != "call Ada" {
		t.Errorf("got %q", got)
	}
	if got := host.Call("read_note", obj{"name": "not there"}); !strings.HasPrefix(got.Text, "[error:FILE_NOT_FOUND]") {
		t.Errorf("got %+v", got)
	}
	if got := host.InterceptMessage("It is SECRET.").Text; got != "It is [redacted]." {
		t.Errorf("got %q", got)
	}
	if got := host.Stream("hello", hilttest.StreamOptions{API: "echo"}).Text; got != "you said: hello" {
		t.Errorf("got %q", got)
	}
	host.Answer("host/sessionTitle", errors.New("no title"))
	if _, err := ext.Host().SessionTitle(context.Background()); err == nil || err.Error() != "no title" {
		t.Errorf("got %v", err)
	}
}

func TestEveryBlockOfTheDocumentsIsCompiled(t *testing.T) {
	own, err := os.ReadFile("docs_test.go")
	if err != nil {
		t.Fatal(err)
	}
	here := squeezed(string(own))
	for _, document := range []string{"README.md", "../../docs/reference/sdk-go.md"} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Logf("%s is not beside this copy of the package", document)
			continue
		}
		for i, block := range strings.Split(string(text), "```go\n")[1:] {
			code, _, _ := strings.Cut(block, "```")
			// What makes it a program is left out: in a test there is another.
			if _, body, whole := strings.Cut("\n"+code, "\ntype arguments"); whole {
				code = "type arguments" + strings.TrimSuffix(body, "func main() { extension().Main() }\n")
			}
			if !strings.Contains(here, squeezed(code)) {
				t.Errorf("%s: block %d is not in docs_test.go:\n%s", document, i+1, code)
			}
		}
	}
}

// squeezed leaves out how lines are indented, and blank ones.
func squeezed(text string) string {
	lines := []string{}
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func TestTheReferenceHasEveryName(t *testing.T) {
	reference, err := os.ReadFile("../../docs/reference/sdk-go.md")
	if err != nil {
		t.Skip("the documents are not beside this copy of the package")
	}
	for _, directory := range []string{".", "hilttest"} {
		packages, err := parser.ParseDir(token.NewFileSet(), directory, func(file os.FileInfo) bool {
			return !strings.HasSuffix(file.Name(), "_test.go")
		}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range packages {
			for _, file := range one.Files {
				for _, declared := range file.Decls {
					function, is := declared.(*ast.FuncDecl)
					if !is || !function.Name.IsExported() || obvious[function.Name.Name] || hidden(function) {
						continue
					}
					if !strings.Contains(string(reference), function.Name.Name) {
						t.Errorf("%s is not in the reference", function.Name.Name)
					}
				}
			}
		}
	}
}

var obvious = map[string]bool{"Error": true, "String": true, "MarshalJSON": true, "UnmarshalJSON": true, "Write": true}

// hidden methods are those of types that nobody else can name.
func hidden(function *ast.FuncDecl) bool {
	if function.Recv == nil {
		return false
	}
	receiver := function.Recv.List[0].Type
	if pointer, is := receiver.(*ast.StarExpr); is {
		receiver = pointer.X
	}
	name, is := receiver.(*ast.Ident)
	return is && !name.IsExported()
}

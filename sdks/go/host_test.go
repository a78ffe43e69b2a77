package hilt_test

// The host: what it lacks, what it is asked for, what it says wrong or too fast.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	hilt "hilt-sdk"
	"hilt-sdk/hilttest"
)

func TestWhatTheHostLacksIsSaidAtTheBeginning(t *testing.T) {
	make := func() *hilt.Extension {
		ext := forecast(t)
		ext.Shortcut("ctrl+g", "", func(*hilt.Call) (hilt.Action, error) { return hilt.Nothing(), nil })
		ext.PromptSection("Rules", "Be brief.")
		ext.On("session_end", func(*hilt.Event) error { return nil })
		ext.InterceptTurnStart(func(*hilt.TurnStart) (hilt.Verdict, error) { return hilt.Allow(), nil })
		ext.Uses("progress", "status")
		return ext
	}
	lacks := map[string]string{
		"zot": "zot 0.1.62 does not offer: events beyond the first five (session_end), progress of tools, prompt sections (Rules), " +
			"shortcuts (ctrl+g), words in the status line",
		"piglet": "piglet does not offer: events (session_end), interception of turns, progress of tools, words in the status line",
	}
	for name, sentence := range lacks {
		t.Run(name, func(t *testing.T) {
			ext := make()
			host := hilttest.New(t, ext, hilttest.Options{Host: name})
			host.Await("a note", func() bool { return len(host.Notes()) == 1 })
			if got := host.Notes()[0]; got.Level != "warn" || got.Text != "weather: "+sentence {
				t.Errorf("got %+v", got)
			}
			if got := strings.Count(host.Log(), "does not offer"); got != len(host.Missing()) {
				t.Errorf("%d lines in the log, of %d", got, len(host.Missing()))
			}
			if len(host.Registered("shortcut")) > 0 != (name == "piglet") {
				t.Errorf("registered %v", host.Registered("shortcut"))
			}
			if err := ext.Status("mood", "fine"); err != nil {
				t.Error(err)
			}
			var missing *hilt.NotOffered
			late := hilt.Tool(ext, "late", "", func(*hilt.Call, struct{}) (string, error) { return "", nil })
			if name == "piglet" && !errors.As(late, &missing) || name == "zot" && late != nil {
				t.Error(late)
			}
			late = ext.On("turn_end", func(*hilt.Event) error { return nil })
			if name == "piglet" && !errors.As(late, &missing) || name == "zot" && late != nil {
				t.Error(late)
			}
			if _, err := ext.Host().SessionTitle(context.Background()); name == "zot" && !errors.As(err, &missing) {
				t.Error(err)
			}
			if err := ext.Steer("left"); name == "zot" && (err == nil || err.Error() != "zot 0.1.62 does not offer steering") {
				t.Error(err)
			}
			if ext.Offers("shortcuts") != (name == "piglet") || ext.Show("look") != nil {
				t.Error("it shows nothing")
			}
		})
		t.Run(name+" refused", func(t *testing.T) {
			ext := hilt.New("guard", "1.0.0")
			lack := "progress of tools"
			if name == "zot" {
				ext.Require("progress")
			} else {
				lack = "interception of answers"
				ext.InterceptAssistantMessage(func(*hilt.AssistantMessage) (hilt.Verdict, error) { return hilt.Allow(), nil }, hilt.Required())
			}
			err := hilttest.Refused(t, ext, hilttest.Options{Host: name})
			if err == nil || !strings.Contains(err.Error(), "does not offer what it needs: "+lack) {
				t.Error(err)
			}
		})
	}
	if host := hilttest.New(t, make()); len(host.Notes()) > 0 || len(host.Missing()) > 0 {
		t.Errorf("hilt lacks %v", host.Missing())
	}
}

func TestTheTableOfFeaturesIsTheProjectsOwn(t *testing.T) {
	own, err := os.ReadFile("features.json")
	if err != nil {
		t.Fatal(err)
	}
	project, err := os.ReadFile("../../spec/features.json")
	if err != nil {
		t.Skip("spec is not beside this copy of the package")
	}
	if string(own) != string(project) {
		t.Error("features.json is not spec/features.json: copy it")
	}
}

func TestTheHostIsAskedByTheNamesOfItsServices(t *testing.T) {
	inBoth(t, func(t *testing.T, options hilttest.Options) {
		ext := hilt.New("demo", "1.0.0")
		read := func(params map[string]any) (any, error) { return "read " + fmt.Sprint(params["args"]), nil }
		options.Answers = map[string]any{
			"host/chat": func(params map[string]any) (any, error) {
				asked := params["messages"].([]any)[0].(obj)["content"]
				return obj{"text": fmt.Sprint("you said ", asked), "usage": obj{"input": 9, "output": 1}}, nil
			},
			"host/sessionTitle": &hilt.HostError{Code: -32603, Message: "permission denied"},
			"host/executeTool":  read,
		}
		host := hilttest.New(t, ext, options)
		ctx, cancel := context.WithCancel(context.Background())
		if got, err := ext.Host().Chat(ctx, hilt.ChatRequest{Text: "2+2?"}); err != nil || got.Text != "you said 2+2?" || got.Usage.Input != 9 {
			t.Errorf("got %+v %v", got, err)
		}
		var refused *hilt.HostError
		if _, err := ext.Host().SessionTitle(ctx); !errors.As(err, &refused) || refused.Code != -32603 {
			t.Errorf("got %v", err)
		}
		if got, err := ext.CallTool(ctx, "read", obj{"path": "a"}); err != nil || got.All() != "read map[path:a]" {
			t.Errorf("got %+v %v", got, err)
		}
		heard := make(chan string, 100)
		topic, err := ext.Host().Subscribe(ctx, "tp", func(data json.RawMessage) { heard <- string(data) })
		if err != nil {
			t.Fatal(err)
		}
		if err := ext.Host().Publish(ctx, "tp", obj{"x": 1}); err != nil {
			t.Error(err)
		}
		if got := <-heard; got != `{"x":1}` {
			t.Errorf("heard %s", got)
		}
		if err := topic.Unsubscribe(ctx); err != nil {
			t.Error(err)
		}
		heardAtOnce(t, ext, host, options.Dialect)
		if got, err := ext.Settings(ctx, "colour"); err != nil || len(got) != 0 {
			t.Errorf("got %v %v", got, err)
		}
		waits := make(chan struct{})
		host.Answer("host/askUser", func(map[string]any) (any, error) {
			cancel()
			<-waits
			return nil, nil
		})
		if _, err := ext.Host().Ask(ctx, "Sure?", "Yes"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		close(waits)
		host.Await("it is taken back", func() bool {
			return slices.ContainsFunc(host.Said(), func(said map[string]any) bool { return said["method"] == "$/cancelRequest" })
		})
	})
}

// What is published right behind the answer to a subscription is heard as well.
func heardAtOnce(t *testing.T, ext *hilt.Extension, host *hilttest.Host, dialect hilt.Dialect) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	asked := make(chan struct{})
	host.Answer("host/subscribe", func(map[string]any) (any, error) {
		close(asked)
		<-never
		return nil, nil
	})
	heard := make(chan struct{})
	go ext.Host().Subscribe(context.Background(), "soon", func(json.RawMessage) { close(heard) })
	<-asked
	said := host.Said()
	id, _ := json.Marshal(said[len(said)-1]["id"])
	lines := `{"jsonrpc":"2.0","id":%s,"result":{"subscriptionId":77}}` + "\n" +
		`{"jsonrpc":"2.0","method":"eventBus/event","params":{"topic":"soon","subscriptionId":77,"data":1}}`
	if dialect == hilt.Frames {
		lines = `{"type":"host_response","id":%s,"result":{"subscriptionId":77}}` + "\n" +
			`{"type":"ext_notify","method":"eventBus/event","params":{"topic":"soon","subscriptionId":77,"data":1}}`
	}
	host.Line(fmt.Sprintf(lines, id))
	select {
	case <-heard:
	case <-time.After(5 * time.Second):
		t.Error("it was not heard")
	}
}

// Every service of the reference has a method of its own, which asks for it by its name with the members it has.
func TestEveryServiceHasAMethod(t *testing.T) {
	raw, err := os.ReadFile("../../spec/jsonrpc.schema.json")
	if err != nil {
		t.Skip("spec is not beside this copy of the package")
	}
	var spec struct {
		Methods map[string]struct{ Params json.RawMessage } `json:"x-methods"`
		Defs    map[string]struct {
			Properties map[string]json.RawMessage
		} `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &spec); err != nil {
		t.Fatal(err)
	}
	ext := hilt.New("demo", "1.0.0")
	asked := map[string]map[string]any{}
	answers := map[string]any{}
	for method := range spec.Methods {
		answers[method] = func(params map[string]any) (any, error) {
			asked[method] = params
			return obj{}, nil
		}
	}
	hilttest.New(t, ext, hilttest.Options{Dialect: hilt.JSONRPC, Answers: answers})
	for _, value := range []any{ext.Host(), &hilt.Subscription{}} {
		kind := reflect.TypeOf(value)
		for i := range kind.NumMethod() {
			method := kind.Method(i)
			if method.Name == "Request" || method.Name == "Unsubscribe" {
				continue
			}
			given := []reflect.Value{reflect.ValueOf(value), reflect.ValueOf(context.Background())}
			last := method.Type.NumIn()
			if method.Type.IsVariadic() {
				last--
			}
			for at := 2; at < last; at++ {
				given = append(given, reflect.Zero(method.Type.In(at)))
			}
			returned := method.Func.Call(given)
			if err := returned[len(returned)-1]; !err.IsNil() {
				t.Errorf("%s: %v", method.Name, err)
			}
		}
	}
	for method, described := range spec.Methods {
		if !strings.HasPrefix(method, "host/") || method == "host/unsubscribe" {
			continue
		}
		params, there := asked[method]
		if !there {
			t.Errorf("no method asks for %s", method)
		}
		var reference string
		var object struct {
			Ref string `json:"$ref"`
		}
		if json.Unmarshal(described.Params, &reference) != nil && json.Unmarshal(described.Params, &object) == nil {
			reference = object.Ref
		}
		known := spec.Defs[reference[strings.LastIndex(reference, "/")+1:]].Properties
		for name := range params {
			if _, is := known[name]; !is {
				t.Errorf("%s has no member %s", method, name)
			}
		}
	}
}

func TestWhatTheHostSaysWrongCostsItselfOnly(t *testing.T) {
	inBoth(t, func(t *testing.T, options hilttest.Options) {
		host := hilttest.New(t, forecast(t), options)
		host.Line("no JSON at all")
		host.Line("{}")
		host.Line(`{"type":"sparkle","jsonrpc":"2.0","method":"sparkle"}`)
		host.Line(`"` + strings.Repeat("x", 5<<20) + `"`)
		host.Line("no JSON either")
		for method, code := range map[string]int{"sparkle/on": -32601, "interceptor/before": -32602} {
			_, err := host.Method(method, obj{"name": 7})
			var refused *hilt.HostError
			if !errors.As(err, &refused) || refused.Code != code {
				t.Errorf("%s: got %v", method, err)
			}
		}
		if got := host.Call("weather", obj{"city": "Rome", "name": "x"}); got.IsError {
			t.Errorf("got %+v", got)
		}
		if log := host.Log(); strings.Count(log, "no JSON") != 1 || strings.Count(log, "too long") != 1 {
			t.Errorf("the log says %s", log)
		}
	})
}

func TestNoMoreThanAFewHundredToolsRunAtOnceAndGuardsNeverWait(t *testing.T) {
	ext := hilt.New("demo", "1.0.0")
	running := make(chan struct{}, 300)
	end := make(chan struct{})
	hilt.Tool(ext, "wait", "", func(*hilt.Call, struct{}) (string, error) {
		running <- struct{}{}
		<-end
		return "waited", nil
	})
	ext.InterceptToolCall(func(*hilt.ToolCall) (hilt.Verdict, error) { return hilt.Block("no"), nil })
	host := hilttest.New(t, ext)
	var calls sync.WaitGroup
	for range 280 {
		calls.Add(1)
		go func() {
			defer calls.Done()
			if got := host.Call("wait", nil); got.Text != "waited" {
				t.Errorf("got %+v", got)
			}
		}()
	}
	host.Await("256 of them run", func() bool { return len(running) >= 256 })
	for range 50 {
		if got := host.Intercept("bash", nil); !got.Blocked {
			t.Errorf("got %+v", got)
		}
	}
	if len(running) != 256 {
		t.Errorf("%d run at once", len(running))
	}
	close(end)
	calls.Wait()
}

func TestEventsThatNobodyTakesInAreDroppedTheOldestFirst(t *testing.T) {
	ext := hilt.New("demo", "1.0.0")
	begun, goOn := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	steps := []int{}
	ext.On("turn_start", func(event *hilt.Event) error {
		if event.Step == 0 {
			close(begun)
			<-goOn
		}
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, event.Step)
		return nil
	})
	ext.Command("done", "", func(*hilt.Call, string) (hilt.Action, error) { return hilt.Nothing(), nil })
	host := hilttest.New(t, ext)
	host.Line(`{"type":"event","event":"turn_start"}`)
	<-begun
	for i := range 10_010 {
		host.Line(fmt.Sprintf(`{"type":"event","event":"turn_start","step":%d}`, i+1))
	}
	host.Run("/done") // all lines before it have been read
	close(goOn)
	host.Await("the last event", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(steps) > 0 && steps[len(steps)-1] == 10_010
	})
	if len(steps) != 10_001 || steps[1] != 11 || strings.Count(host.Log(), "oldest are dropped") != 1 {
		t.Errorf("%d events came, the second was %d: %s", len(steps), steps[1], host.Log())
	}
}

func TestTheExtensionKnowsWhereItIs(t *testing.T) {
	inBoth(t, func(t *testing.T, options hilttest.Options) {
		ext := hilt.New("demo", "1.0.0")
		if err := ext.Notify("too soon"); !errors.Is(err, hilt.ErrNotRunning) {
			t.Errorf("got %v", err)
		}
		options.Cwd, options.DataDir = "/w", t.TempDir()+"/data/demo"
		ready := make(chan struct{})
		ext.OnReady(func() error {
			defer close(ready)
			return ext.Notify("here", hilt.LevelSuccess)
		})
		host := hilttest.New(t, ext, options)
		<-ready
		host.Await("a note", func() bool { return len(host.Notes()) == 1 })
		info := ext.HostInfo()
		if info.String() != "hilt 0.1.0" || info.Dialect != options.Dialect || len(info.Capabilities) == 0 || ext.Cwd() != "/w" || host.Notes()[0] != (hilttest.Note{Level: "success", Text: "here"}) {
			t.Errorf("got %v %s %v", ext.HostInfo(), ext.Cwd(), host.Notes())
		}
		if there, err := os.Stat(ext.DataDir()); err != nil || !there.IsDir() {
			t.Errorf("got %v", err)
		}
		if err := ext.Notify(strings.Repeat("x", 5<<20)); err == nil || !strings.Contains(err.Error(), "too many for one line") {
			t.Errorf("got %v", err)
		}
		hilt.Tool(ext, "long", "", func(*hilt.Call, struct{}) (string, error) { return strings.Repeat("x", 5<<20), nil })
		if got := host.Call("long", nil); !got.IsError || !strings.Contains(got.Text, "write a file") {
			t.Errorf("got %.100v", got)
		}
		if said := host.Said(); said[len(said)-1]["error"] != nil {
			t.Error("it is no result")
		}
		host.Answer("host/waitForIdle", func(map[string]any) (any, error) { select {} })
		waited := make(chan error, 1)
		go func() { waited <- ext.Host().WaitForIdle(context.Background()) }()
		host.Await("it waits", func() bool {
			said := host.Said()
			return said[len(said)-1]["method"] == "host/waitForIdle"
		})
		host.Close()
		if err := <-waited; !errors.Is(err, hilt.ErrNotRunning) {
			t.Errorf("got %v", err)
		}
		if err := ext.Notify("too late"); !errors.Is(err, hilt.ErrNotRunning) {
			t.Errorf("got %v", err)
		}
	})
}

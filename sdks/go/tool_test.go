package hilt_test

// Tools: their schemas, arguments, results, and their end before the end.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	hilt "hilt-sdk"
	"hilt-sdk/hilttest"
)

type place struct {
	Name string `json:"name"`
}

type weatherArgs struct {
	City  string         `json:"city" help:"the city" min:"2"`
	Days  int            `json:"days" default:"1" min:"1" max:"14"`
	Unit  string         `json:"unit,omitempty" enum:"celsius,kelvin"`
	Where *place         `json:"where"`
	Tags  []string       `json:"tags,omitempty" enum:"a,b"`
	More  map[string]int `json:"more,omitempty"`
	Any   any            `json:"any,omitempty"`
	When  time.Time      `json:"when,omitempty"`
	place
	hidden int
}

func TestASchemaIsMadeFromTheFieldsOfAStruct(t *testing.T) {
	schema, err := hilt.SchemaOf[weatherArgs]()
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(schema)
	want := `{"additionalProperties":false,"properties":{` +
		`"any":{},` +
		`"city":{"description":"the city","minLength":2,"type":"string"},` +
		`"days":{"default":1,"maximum":14,"minimum":1,"type":"integer"},` +
		`"more":{"additionalProperties":{"type":"integer"},"type":"object"},` +
		`"name":{"type":"string"},` +
		`"tags":{"items":{"enum":["a","b"],"type":"string"},"type":"array"},` +
		`"unit":{"enum":["celsius","kelvin"],"type":"string"},` +
		`"when":{"type":"string"},` +
		`"where":{"additionalProperties":false,"properties":{"name":{"type":"string"}},"required":["name"],"type":"object"}},` +
		`"required":["city","name"],"type":"object"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWhatCannotBeRegisteredIsSaidBeforeAnythingRuns(t *testing.T) {
	type circle struct {
		Next *circle `json:"next"`
	}
	none := func(*hilt.Call, struct{}) (string, error) { return "", nil }
	cases := map[string]func(*hilt.Extension) error{
		`tool "x": field Do: there is no JSON Schema for the type chan int`: func(e *hilt.Extension) error {
			return hilt.Tool(e, "x", "", func(*hilt.Call, struct{ Do chan int }) (string, error) { return "", nil })
		},
		`holds itself`: func(e *hilt.Extension) error {
			return hilt.Tool(e, "x", "", func(*hilt.Call, circle) (string, error) { return "", nil })
		},
		`field Days: default "soon"`: func(e *hilt.Extension) error {
			return hilt.Tool(e, "x", "", func(*hilt.Call, struct {
				Days int `default:"soon"`
			}) (string, error) {
				return "", nil
			})
		},
		`arguments are a struct, not string`: func(e *hilt.Extension) error {
			return hilt.Tool(e, "x", "", func(*hilt.Call, string) (string, error) { return "", nil })
		},
		`tool "a b": a name is`:            func(e *hilt.Extension) error { return hilt.Tool(e, "a b", "", none) },
		`command "a b": a name is`:         func(e *hilt.Extension) error { return e.Command("a b", "", nil) },
		`there is no event "turn_ended"`:   func(e *hilt.Extension) error { return e.On("turn_ended", nil) },
		`there is no feature "telepathy"`:  func(e *hilt.Extension) error { return e.Require("telepathy") },
		`a prompt section has a title`:     func(e *hilt.Extension) error { return e.PromptSection("", "x") },
		`a provider has the name of an AP`: func(e *hilt.Extension) error { return e.Provider("", nil, nil) },
	}
	for wanted, register := range cases {
		ext := hilt.New("demo", "1.0.0")
		said := register(ext)
		if said == nil || !strings.Contains(said.Error(), wanted) {
			t.Errorf("%v does not say %q", said, wanted)
		}
		if err := ext.Serve(strings.NewReader(""), nil, hilt.Frames); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("it ran, though %q: %v", wanted, err)
		}
	}
}

func forecast(t *testing.T) *hilt.Extension {
	ext := hilt.New("weather", "1.0.0")
	err := hilt.Tool(ext, "weather", "Get the weather.", func(_ *hilt.Call, args weatherArgs) (string, error) {
		return fmt.Sprintf("%s %d %s %v %s", args.City, args.Days, args.Unit, args.Where, args.Name), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ext
}

func TestArgumentsArriveAsTheirTypesAndOnesThatDoNotFitAreRefused(t *testing.T) {
	inBoth(t, func(t *testing.T, options hilttest.Options) {
		host := hilttest.New(t, forecast(t), options)
		got := host.Call("weather", obj{"city": "Rome", "name": "x", "days": 2.0, "unit": nil})
		if got.Text != "Rome 2  <nil> x" || got.IsError {
			t.Errorf("got %+v", got)
		}
		for wanted, args := range map[string]obj{
			`city is missing`:                                      {"name": "x"},
			`days must be an integer, not "x"`:                     {"city": "Rome", "name": "x", "days": "x"},
			`days must be at most 14, not 15`:                      {"city": "Rome", "name": "x", "days": 15},
			`unit must be one of "celsius", "kelvin", not "inch"`:  {"city": "Rome", "name": "x", "unit": "inch"},
			`tags[1] must be one of "a", "b", not "c"`:             {"city": "Rome", "name": "x", "tags": []string{"a", "c"}},
			`where.name is missing`:                                {"city": "Rome", "name": "x", "where": obj{}},
			`there is no argument town; there are any, city, days`: {"city": "Rome", "name": "x", "town": "x"},
			`city must have at least 2 characters, not 1`:          {"city": "R", "name": "x"},
		} {
			if got := host.Call("weather", args); !got.IsError || !strings.HasPrefix(got.Text, wanted) {
				t.Errorf("%v: got %+v", args, got)
			}
		}
	})
}

func TestWhateverAToolReturnsBecomesAResult(t *testing.T) {
	png := []byte("\x89PNG\r\n")
	ext := hilt.New("demo", "1.0.0")
	give := func(name string, value any, err error) {
		hilt.Tool(ext, name, "", func(*hilt.Call, struct{}) (any, error) { return value, err })
	}
	give("text", "hi <there>", nil)
	give("none", nil, nil)
	give("data", struct {
		Sum int `json:"sum"`
	}{3}, nil)
	give("image", hilt.Content{Data: png, MIME: "image/png"}, nil)
	give("nan", map[string]float64{"x": math.NaN()}, nil)
	give("fails", nil, errors.New("no such city"))
	give("told", nil, fmt.Errorf("wrapped: %w", &hilt.ToolError{Message: "not there", Code: "FILE_NOT_FOUND", Hint: "look elsewhere"}))
	give("long", strings.Repeat("x", 5<<20), nil)
	hilt.Tool(ext, "panics", "", func(*hilt.Call, struct{}) (string, error) { panic("oh no") })
	host := hilttest.New(t, ext)
	for name, want := range map[string]hilttest.Result{
		"text":    {Text: "hi <there>"},
		"none":    {Text: "ok"},
		"data":    {Text: `{"sum":3}`, Structured: `{"sum":3}`},
		"fails":   {Text: "no such city", IsError: true},
		"told":    {Text: "[error:FILE_NOT_FOUND] not there\nhint: look elsewhere", IsError: true},
		"panics":  {Text: "panic: oh no", IsError: true},
		"nan":     {Text: "x: JSON cannot hold NaN", IsError: true},
		"unknown": {Text: "unknown tool: unknown", IsError: true},
	} {
		if got := host.Call(name, nil); got.Text != want.Text || got.IsError != want.IsError || got.Structured != want.Structured {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if got := host.Call("long", nil); !got.IsError || !strings.Contains(got.Text, "write a file") || !strings.HasPrefix(got.Text, "52429") {
		t.Errorf("long: got %.100v", got)
	}
	if got := host.Call("image", nil); len(got.Content) != 1 || got.Content[0]["mime_type"] != "image/png" {
		t.Errorf("image: got %+v", got)
	}
	if log := host.Log(); !strings.Contains(log, "tool_test.go") {
		t.Errorf("the stack is not in the log: %s", log)
	}
	if picture, err := hilt.Image(png); err != nil || picture.MIME != "image/png" {
		t.Errorf("%v %v", picture, err)
	}
}

func TestHandlersRunSideBySideAndCanBeCancelled(t *testing.T) {
	inBoth(t, func(t *testing.T, options hilttest.Options) {
		ext := hilt.New("demo", "1.0.0")
		both := sync.WaitGroup{}
		both.Add(2)
		hilt.Tool(ext, "meet", "", func(*hilt.Call, struct{}) (string, error) {
			both.Done()
			both.Wait() // in vain, if the other had to wait for this one
			return "met", nil
		})
		begun := make(chan struct{})
		noticed := make(chan struct{})
		hilt.Tool(ext, "slow", "", func(call *hilt.Call, _ struct{}) (string, error) {
			call.OnCancel(func() { close(noticed) })
			call.Progress("one")
			close(begun)
			stopped := call.Wait(time.Minute)
			<-noticed
			return fmt.Sprint(stopped, call.Cancelled()), nil
		})
		host := hilttest.New(t, ext, options)
		met := make(chan hilttest.Result, 2)
		go func() { met <- host.Call("meet", nil) }()
		go func() { met <- host.Call("meet", nil) }()
		if one, other := <-met, <-met; one.Text != "met" || other.Text != "met" {
			t.Errorf("%v %v", one, other)
		}
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-begun
			cancel()
		}()
		got := host.CallContext(ctx, "slow", nil)
		if got.Text != "true true" || !reflect.DeepEqual(got.Progress, []string{"one"}) {
			t.Errorf("got %+v", got)
		}
	})
}

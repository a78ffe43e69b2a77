// A scratchpad that the model and the user share: notes by name, kept between sessions.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	hilt "hilt-sdk"
)

type pad struct {
	ext *hilt.Extension
	mu  sync.Mutex // tools run side by side
}

type noteArguments struct {
	Name string `json:"name" help:"what the note is called"`
	Text string `json:"text" help:"what to keep; empty forgets the note"`
}

type nameArguments struct {
	Name string `json:"name,omitempty" help:"which note; all their names without it"`
}

func (p *pad) write(call *hilt.Call, args noteArguments) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	notes, err := p.load()
	if err != nil {
		return "", err
	}
	notes[args.Name] = args.Text
	if args.Text == "" {
		delete(notes, args.Name)
	}
	return fmt.Sprintf("%d notes", len(notes)), p.save(notes)
}

func (p *pad) read(call *hilt.Call, args nameArguments) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	notes, err := p.load()
	if err != nil {
		return "", err
	}
	if args.Name == "" {
		return names(notes), nil
	}
	text, known := notes[args.Name]
	if !known {
		return "", fmt.Errorf("there is no note %q; there are: %s", args.Name, names(notes))
	}
	return text, nil
}

func names(notes map[string]string) string {
	var all []string
	for name := range notes {
		all = append(all, name)
	}
	slices.Sort(all)
	if len(all) == 0 {
		return "(no notes)"
	}
	return strings.Join(all, ", ")
}

func (p *pad) place() string { return filepath.Join(p.ext.DataDir(), "notes.json") }

func (p *pad) load() (map[string]string, error) {
	notes := map[string]string{}
	text, err := os.ReadFile(p.place())
	if errors.Is(err, fs.ErrNotExist) {
		return notes, nil
	}
	if err != nil {
		return nil, err
	}
	return notes, json.Unmarshal(text, &notes)
}

// save replaces the file at once, so that nobody ever reads half of it.
func (p *pad) save(notes map[string]string) error {
	text, err := json.Marshal(notes)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.place()+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(p.place()+".new", p.place())
}

func extension() *hilt.Extension {
	ext := hilt.New("scratchpad", "1.0.0")
	p := &pad{ext: ext}
	hilt.Tool(ext, "note", "Keep a note under a name, also for later sessions.", p.write)
	hilt.Tool(ext, "recall", "Read a note that was kept.", p.read)
	ext.Command("notes", "show what is on the scratchpad", func(call *hilt.Call, args string) (hilt.Action, error) {
		text, err := p.read(call, nameArguments{Name: args})
		return hilt.Show(text), err
	})
	return ext
}

func main() { extension().Main() }

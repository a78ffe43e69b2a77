package hilt

// Panels: a piece of the screen that an extension draws and whose keys it gets.

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Panel is what a panel shows. It may also have a Title() string, a Footer() string, an OnKey(key, text string), an
// OnResize(width, height int) and an OnClose(), which are called if they are there, one after the other. It is drawn anew
// after each of them by itself, and with [Extension.Update] at any other time.
//
// With a PanelID() string the host knows it by that, and a new process of the extension goes on with the old panel.
type Panel interface {
	// Render gives the lines for a room of that many characters.
	Render(width, height int) []string
}

type titled interface{ Title() string }
type footed interface{ Footer() string }
type keyed interface{ OnKey(key, text string) }
type resized interface{ OnResize(width, height int) }
type identified interface{ PanelID() string }
type closed interface{ OnClose() }

// Until the host says how much room there is.
const supposedWidth, supposedHeight = 80, 24

// shownPanel is an open panel.
type shownPanel struct {
	id     string
	panel  Panel
	lane   lane
	mu     sync.Mutex
	width  int
	height int
	last   obj
}

// draw gives the panel as it is now, and whether that differs from what was told last. The lock is not held while the
// author's methods run: they may call whatever they like.
func (s *shownPanel) draw() (obj, bool) {
	s.mu.Lock()
	width, height := s.width, s.height
	s.mu.Unlock()
	spec := obj{"panel_id": s.id, "lines": slices.Clone(s.panel.Render(width, height))}
	if panel, has := s.panel.(titled); has {
		spec["title"] = panel.Title()
	}
	if panel, has := s.panel.(footed); has {
		spec["footer"] = panel.Footer()
	}
	if lines, _ := spec["lines"].([]string); lines == nil {
		spec["lines"] = []string{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := !reflect.DeepEqual(spec, s.last)
	s.last = spec
	return spec, changed
}

// panels are those of a connection that are open.
type panels struct {
	conn  *connection
	mu    sync.Mutex
	count int
	shown map[string]*shownPanel
}

// open gives what opens the panel. One that is open already keeps its id.
func (p *panels) open(panel Panel) (spec obj, err error) {
	if panel == nil || !reflect.TypeOf(panel).Comparable() {
		return nil, errors.New("a panel is a pointer to a value with a Render method")
	}
	shown := p.find(panel)
	if shown == nil {
		p.mu.Lock()
		p.count++
		id := fmt.Sprintf("%s-%d", p.conn.ext.Name(), p.count)
		if panel, has := panel.(identified); has {
			id = panel.PanelID()
		}
		shown = &shownPanel{id: id, panel: panel, width: supposedWidth, height: supposedHeight}
		p.shown[shown.id] = shown
		p.mu.Unlock()
	}
	return guarded(p.conn.ext, "panel", func() (obj, error) {
		spec, _ := shown.draw()
		return spec, nil
	})
}

func (p *panels) find(panel Panel) *shownPanel {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, shown := range p.shown {
		if shown.panel == panel {
			return shown
		}
	}
	return nil
}

func (p *panels) forget(id string) *shownPanel {
	p.mu.Lock()
	defer p.mu.Unlock()
	shown := p.shown[id]
	delete(p.shown, id)
	return shown
}

// redraw tells the host how the panel looks, if it looks otherwise than before.
func (p *panels) redraw(shown *shownPanel) error {
	spec, err := guarded(p.conn.ext, "panel", func() (obj, error) {
		spec, changed := shown.draw()
		if !changed {
			return nil, nil
		}
		return spec, nil
	})
	if err != nil || spec == nil {
		return err
	}
	return p.conn.tell("panel/render", spec)
}

// heard deals with what the host says about a panel: keys, its size, that it was closed.
func (p *panels) heard(method string, raw json.RawMessage) {
	var params struct {
		ID     string `json:"panel_id"`
		Key    string `json:"key"`
		Text   string `json:"text"`
		Width  int    `json:"width"`
		Height int    `json:"height"`
	}
	if err := json.Unmarshal(raw, &params); err != nil {
		p.conn.ext.logf("%s: %v", method, err)
		return
	}
	p.mu.Lock()
	shown := p.shown[params.ID]
	p.mu.Unlock()
	if shown == nil {
		return
	}
	shown.lane.do(p.conn, func() {
		err := guardedErr(p.conn.ext, "panel", func() error {
			p.handle(shown, method, params.Key, params.Text, params.Width, params.Height)
			return nil
		})
		if err == nil && method != "panel/closed" && p.find(shown.panel) != nil {
			err = p.redraw(shown)
		}
		if err != nil {
			p.conn.ext.logf("panel %s: %v", params.ID, err)
		}
	})
}

func (p *panels) handle(shown *shownPanel, method, key, text string, width, height int) {
	switch method {
	case "panel/key":
		if panel, has := shown.panel.(keyed); has {
			panel.OnKey(key, text)
		}
	case "panel/resize":
		shown.mu.Lock()
		shown.width, shown.height = width, height
		shown.mu.Unlock()
		if panel, has := shown.panel.(resized); has {
			panel.OnResize(width, height)
		}
	case "panel/closed":
		p.forget(shown.id)
		if panel, has := shown.panel.(closed); has {
			panel.OnClose()
		}
	}
}

// inWords is a panel where there are none.
func inWords(panel Panel) string {
	lines := panel.Render(supposedWidth, supposedHeight)
	if panel, has := panel.(titled); has {
		lines = append([]string{panel.Title()}, lines...)
	}
	if panel, has := panel.(footed); has {
		lines = append(slices.Clone(lines), panel.Footer())
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// Open opens a panel unasked. Where the host has none, its text is shown.
func (e *Extension) Open(panel Panel) error {
	c, err := e.connected()
	if err != nil {
		return err
	}
	if !c.offers("panels") || !c.offers("open_panel") {
		return e.Show(inWords(panel))
	}
	spec, err := c.panels.open(panel)
	if err != nil {
		return err
	}
	return c.tell("panel/open", spec)
}

// Update has an open panel drawn anew, after what it is busy with. One that is not open is left alone.
func (e *Extension) Update(panel Panel) error {
	c, err := e.connected()
	if err != nil {
		return err
	}
	if shown := c.panels.find(panel); shown != nil {
		shown.lane.do(c, func() {
			if err := c.panels.redraw(shown); err != nil {
				e.logf("panel %s: %v", shown.id, err)
			}
		})
	}
	return nil
}

// Close closes an open panel. One that is not open is left alone.
func (e *Extension) Close(panel Panel) error {
	c, err := e.connected()
	if err != nil {
		return err
	}
	shown := c.panels.find(panel)
	if shown == nil || c.panels.forget(shown.id) == nil {
		return nil
	}
	return c.tell("panel/close", obj{"panel_id": shown.id})
}

package hilt

// What an extension tells the host unasked.

// Level is how much a note or a line of the log matters.
type Level string

const (
	LevelDebug   Level = "debug"
	LevelInfo    Level = "info"
	LevelSuccess Level = "success"
	LevelWarn    Level = "warn"
	LevelError   Level = "error"
)

func levelOf(given []Level) string {
	if len(given) == 0 || given[0] == "" {
		return string(LevelInfo)
	}
	return string(given[0])
}

// Notify leaves a note for the user, at LevelInfo unless another is given. The model never sees it.
func (e *Extension) Notify(text string, level ...Level) error {
	return e.say("notes", "notify", obj{"message": text, "level": levelOf(level)})
}

// ClearNotes takes all its notes away, where the host can.
func (e *Extension) ClearNotes() error { return e.offerOnce("clear_notes", "clear_notes", obj{}) }

// Show shows a text to the user. Where the host has no other place for it, it is a note.
func (e *Extension) Show(text string) error {
	c, err := e.connected()
	if err != nil {
		return err
	}
	if !c.offers("show") {
		return e.Notify(text)
	}
	return c.tell("showMessage", obj{"text": text})
}

// Submit sends a prompt to the model as if the user had typed it; one that begins with a slash runs a command.
func (e *Extension) Submit(text string) error {
	return e.say("submit", "sendMessage", obj{"content": text})
}

// Steer says something to the model at the next boundary of what runs.
func (e *Extension) Steer(text string) error { return e.say("steer", "steer", obj{"content": text}) }

// Abort stops the turn. A reason becomes part of the conversation.
func (e *Extension) Abort(reason string) error {
	if reason == "" {
		return e.say("abort", "abort", obj{})
	}
	return e.say("abort", "abortWithMarker", obj{"reason": reason})
}

// SetInput puts a text into the user's input, in place of what stands there.
func (e *Extension) SetInput(text string) error {
	return e.say("input_text", "setInputText", obj{"text": text})
}

// Placement is where a widget stands.
type Placement string

const (
	AboveInput  Placement = "above-input"
	BelowStatus Placement = "below-status"
)

// Widget shows a few lines at a place, above the input unless another is given. An empty text takes them away.
func (e *Extension) Widget(key, text string, placement ...Placement) error {
	where := AboveInput
	if len(placement) > 0 && placement[0] != "" {
		where = placement[0]
	}
	return e.offerOnce("widgets", "setWidget", obj{"key": key, "placement": string(where), "content": text})
}

// Overlay is a text above everything else.
type Overlay struct {
	Title string
	// Anchor is where it stands, in words such as top-left.
	Anchor string
	// Width is a number of columns, or a share such as 50%.
	Width string
}

// ShowOverlay shows a text above everything else, until it is closed by its key.
func (e *Extension) ShowOverlay(key, text string, look Overlay) error {
	params := present(obj{"title": look.Title, "anchor": look.Anchor, "width": look.Width})
	return e.say("overlays", "showOverlay", merge(params, obj{"key": key, "content": text}))
}

// CloseOverlay takes an overlay away.
func (e *Extension) CloseOverlay(key string) error {
	return e.say("overlays", "closeOverlay", obj{"key": key})
}

// Status puts a word into the status line; an empty one goes.
func (e *Extension) Status(key, text string) error {
	return e.offerOnce("status", "setStatus", obj{"key": key, "text": text})
}

// Log writes a line to the extension's log.
func (e *Extension) Log(text string, level ...Level) error {
	e.mu.Lock()
	c := e.conn
	e.mu.Unlock()
	if c == nil || !c.isReady() || c.isOver() || c.dialect.name() == Frames {
		if given := levelOf(level); given != string(LevelInfo) {
			text = given + ": " + text
		}
		e.logLine(text)
		return nil
	}
	return c.tell("log", obj{"level": levelOf(level), "message": text})
}

// say tells the host, or says that it does not offer that.
func (e *Extension) say(feature, method string, params obj) error {
	c, err := e.connected()
	if err != nil {
		return err
	}
	if !c.offers(feature) {
		return &NotOffered{feature, c.greeted.host}
	}
	return c.tell(method, params)
}

// hint tells the host if it can use it.
func (e *Extension) hint(feature, method string, params obj) error {
	c, err := e.connected()
	if err != nil || !c.offers(feature) {
		return err
	}
	return c.tell(method, params)
}

// offerOnce is hint, with one line in the log when the host cannot use it.
func (e *Extension) offerOnce(feature, method string, params obj) error {
	c, err := e.connected()
	if err != nil {
		return err
	}
	if !c.offers(feature) {
		c.grumble(feature, (&NotOffered{feature, c.greeted.host}).Error()+": left out")
		return nil
	}
	return c.tell(method, params)
}

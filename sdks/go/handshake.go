package hilt

// The beginning of a conversation: who the host is, what it lacks, and what is registered with it.

import (
	"fmt"
	"slices"
	"strings"
)

// greet learns who the host is, and registers everything with it.
func (c *connection) greet(in incoming) {
	select {
	case <-c.known:
		return // only the first counts
	default:
	}
	greeted, err := c.dialect.greeted(in)
	if err != nil {
		c.grumble("greeting", fmt.Sprintf("what the host says of itself cannot be read: %v", err))
	}
	c.greeted = greeted
	close(c.known)
	missing := c.missing()
	if needed := slices.DeleteFunc(slices.Clone(missing), func(one usage) bool { return !one.required }); len(needed) > 0 {
		c.refuse(in, fmt.Sprintf("%s does not offer what it needs: %s", c.greeted.host, strings.Join(lackingEach(needed), ", ")))
		return
	}
	for _, words := range lackingEach(missing) {
		c.ext.logf("%s does not offer %s", c.greeted.host, words)
	}
	if err := c.sendAll(c.registrations()); err != nil {
		c.ext.logf("register: %v", err)
	}
	if c.dialect.name() == JSONRPC {
		c.answer(in, obj{"name": c.ext.name, "version": c.ext.version}, nil)
	}
	if len(missing) > 0 {
		_ = c.tell("notify", obj{"level": "warn", "message": c.ext.name + ": " + lacking(c.greeted.host, missing)}) // it is in the log
	}
	if c.dialect.name() == Frames {
		_ = c.send(obj{"type": "ready"}) // a host that has gone is noticed when reading
	}
	close(c.ready)
	c.ext.mu.Lock()
	begin := slices.Clone(c.ext.onReady)
	c.ext.mu.Unlock()
	for _, one := range begin {
		c.work.change(1)
		go func() {
			defer c.work.change(-1)
			if err := guardedErr(c.ext, "on ready", one); err != nil {
				c.ext.logf("on ready: %v", err)
			}
		}()
	}
}

// refuse leaves, because the host lacks what the extension cannot do without.
func (c *connection) refuse(in incoming, why string) {
	c.refused = fmt.Errorf("%s: %s", c.ext.name, why)
	c.ext.logf("%s", why)
	if c.dialect.name() == JSONRPC {
		c.answer(in, nil, &HostError{codeFailed, c.refused.Error()})
	} else {
		_ = c.tell("notify", obj{"level": "error", "message": c.refused.Error()}) // it is in the log
	}
	c.end()
}

// begin says what can be said before the host is known.
func (c *connection) begin() error {
	d, isFrames := c.dialect.(frames)
	if !isFrames {
		return nil
	}
	if err := c.send(d.hello(c.ext.name, c.ext.version)); err != nil {
		return err
	}
	return c.sendAll(c.firstRegistrations())
}

// firstRegistrations are those that every host of the frames dialect knows. Guards are among them, so that no call can pass
// them by.
func (c *connection) firstRegistrations() []registration {
	c.ext.mu.Lock()
	all := []registration{}
	for _, one := range c.ext.offered {
		if isFirst(one) {
			all = append(all, one)
		}
	}
	intercept, events := []string{}, []string{}
	for _, one := range c.ext.interceptors {
		if !one.named {
			intercept = append(intercept, one.subscribed()...)
		}
	}
	for _, one := range c.ext.listeners {
		if !isRaw(one.event) {
			events = append(events, one.event)
		}
	}
	c.ext.mu.Unlock()
	if len(intercept)+len(events) > 0 {
		all = append(all, registration{"subscribe", obj{"events": unique(events), "intercept": unique(intercept)}})
	}
	return all
}

func isFirst(one registration) bool { return one.kind == "tool" || one.kind == "command" }

// subscribed are the events that an interceptor can be asked about without a name.
func (i *interceptor) subscribed() []string {
	return slices.DeleteFunc(i.events(), func(event string) bool { return len(i.deciders[event]) == 0 })
}

// registrations are all that were not sent yet and that this host knows.
func (c *connection) registrations() []registration {
	all := []registration{}
	inFrames := c.dialect.name() == Frames
	c.ext.mu.Lock()
	for _, one := range c.ext.offered {
		if !(inFrames && isFirst(one)) && c.offers(featureOf[one.kind]) {
			all = append(all, one)
		}
	}
	for _, one := range c.ext.interceptors {
		all = append(all, c.interceptorRegistrations(one)...)
	}
	c.ext.mu.Unlock()
	all = append(all, c.hookRegistrations()...)
	for _, one := range c.eventRegistrations() {
		if !inFrames || one.kind != "subscribe" {
			all = append(all, one)
		}
	}
	return all
}

func (c *connection) interceptorRegistrations(one *interceptor) []registration {
	events := one.events()
	if !c.offers("intercept.turn_start") && c.dialect.name() == JSONRPC {
		events = slices.DeleteFunc(events, func(event string) bool { return event != "tool_call" })
	}
	switch {
	case c.byName(one) && len(events) > 0:
		return []registration{one.registration(events)}
	case c.dialect.name() == JSONRPC:
		return nil
	case one.named:
		return []registration{{"subscribe", obj{"intercept": one.subscribed()}}}
	case len(one.deciders["tool_result"]) > 0 && c.offers("intercept.tool_result"):
		return []registration{one.registration([]string{"tool_call"})}
	}
	return nil
}

var featureOf = map[string]string{
	"tool": "tools", "command": "commands", "prompt_section": "prompt_sections", "shortcut": "shortcuts",
	"compactor": "compactors", "provider": "providers",
}

// offers tells whether the host has a feature. Before it is known, it has none.
func (c *connection) offers(name string) bool {
	known, there := features()[name]
	if !there {
		c.grumble(name, fmt.Sprintf("there is no feature %q", name))
	}
	return there && isClosed(c.known) && known.offered(c.dialect.name(), c.greeted.host.Capabilities)
}

// missing is what the extension uses and the host does not have.
func (c *connection) missing() []usage {
	c.ext.mu.Lock()
	defer c.ext.mu.Unlock()
	lacked := []usage{}
	for _, one := range c.ext.used {
		isEvent := one.feature == "events" || one.feature == "more_events"
		switch {
		case isEvent && one.what != "" && c.dialect.name() == JSONRPC:
			if counterparts[one.what] == "" {
				lacked = append(lacked, usage{"events", one.what, one.required})
			}
		case !c.offers(one.feature):
			lacked = append(lacked, one)
		}
	}
	return lacked
}

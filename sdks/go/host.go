package hilt

// Host services: asking for them in general, tools, and messages among extensions. services.go has the others by name.

import (
	"context"
	"encoding/json"
	"fmt"
)

// Host is what can be asked of the host. Every method waits for the answer; one whose context is done is taken back.
type Host struct {
	ext *Extension
}

// Request asks for any service by its method, such as "host/sessionTitle". Params are anything that is an object in JSON, or
// nil. An error of the host's is a *[HostError].
func (h *Host) Request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	members, err := membersOf(params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return h.ask(ctx, method, members, nil)
}

func (h *Host) ask(ctx context.Context, method string, params obj, first func(json.RawMessage)) (json.RawMessage, error) {
	c, err := h.ext.connected()
	if err != nil {
		return nil, err
	}
	feature := "services"
	switch method {
	case "host/executeTool":
		feature = "call_tool"
	case "host/publish", "host/subscribe":
		feature = "bus"
	}
	if !c.offers(feature) {
		return nil, &NotOffered{feature, c.greeted.host}
	}
	return c.ask(ctx, method, params, first)
}

func membersOf(params any) (obj, error) {
	if params == nil {
		return nil, nil
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	var members obj
	if err := unmarshalNumbers(raw, &members); err != nil {
		return nil, fmt.Errorf("the params are not an object: %w", err)
	}
	return members, nil
}

// fetch asks and reads the result into a value of its type.
func fetch[T any](ctx context.Context, h *Host, method string, params any) (T, error) {
	var result T
	raw, err := h.Request(ctx, method, params)
	if err != nil || len(raw) == 0 {
		return result, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, fmt.Errorf("what the host answered to %s cannot be read: %w", method, err)
	}
	return result, nil
}

// do asks for something that has no result.
func (h *Host) do(ctx context.Context, method string, params any) error {
	_, err := h.Request(ctx, method, params)
	return err
}

// ExecuteTool runs a tool of the host's or of any extension. Within a call, use [Call.CallTool].
func (h *Host) ExecuteTool(ctx context.Context, name string, args any) (Result, error) {
	return h.ext.callTool(ctx, name, args, "")
}

// CallTool runs a tool of the host's or of any extension. Within a call, use [Call.CallTool].
func (e *Extension) CallTool(ctx context.Context, name string, args any) (Result, error) {
	return e.callTool(ctx, name, args, "")
}

func (e *Extension) callTool(ctx context.Context, name string, args any, parent string) (Result, error) {
	if args == nil {
		args = obj{}
	}
	params := present(obj{"name": name, "callId": parent})
	members, err := membersOf(args)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", name, err)
	}
	params["args"] = members
	raw, err := e.host.ask(ctx, "host/executeTool", params, nil)
	if err != nil {
		return Result{}, err
	}
	return readResult(raw)
}

// Subscription is a topic that is listened to.
type Subscription struct {
	host *Host
	id   int
}

type subscription struct {
	lane   lane
	handle func(data json.RawMessage)
}

// Subscribe listens to what extensions publish on a topic, in order.
func (h *Host) Subscribe(ctx context.Context, topic string, handle func(data json.RawMessage)) (*Subscription, error) {
	var told struct {
		ID int `json:"subscriptionId"`
	}
	c, err := h.ext.connected()
	if err != nil {
		return nil, err
	}
	if !c.offers("bus") {
		return nil, &NotOffered{"bus", c.greeted.host}
	}
	// Before the next line is read, which may be the first that is published.
	listen := func(result json.RawMessage) {
		if json.Unmarshal(result, &told) == nil {
			c.mu.Lock()
			c.listening[told.ID] = &subscription{handle: handle}
			c.mu.Unlock()
		}
	}
	if _, err := h.ask(ctx, "host/subscribe", obj{"topic": topic}, listen); err != nil {
		return nil, err
	}
	return &Subscription{h, told.ID}, nil
}

// Unsubscribe ends it.
func (s *Subscription) Unsubscribe(ctx context.Context) error {
	c, err := s.host.ext.connected()
	if err != nil {
		return err
	}
	c.mu.Lock()
	delete(c.listening, s.id)
	c.mu.Unlock()
	if !c.offers("unsubscribe") {
		return nil // nobody hears it any more
	}
	return s.host.do(ctx, "host/unsubscribe", obj{"subscriptionId": s.id})
}

// Publish says something on a topic, to all who subscribed to it.
func (h *Host) Publish(ctx context.Context, topic string, data any) error {
	return h.do(ctx, "host/publish", obj{"topic": topic, "data": data})
}

func (c *connection) published(raw json.RawMessage) {
	var params struct {
		ID   int             `json:"subscriptionId"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(raw, &params); err != nil {
		c.ext.logf("eventBus/event: %v", err)
		return
	}
	c.mu.Lock()
	one := c.listening[params.ID]
	c.mu.Unlock()
	if one == nil {
		return
	}
	one.lane.do(c, func() {
		err := guardedErr(c.ext, "subscription", func() error {
			one.handle(params.Data)
			return nil
		})
		if err != nil {
			c.ext.logf("subscription: %v", err)
		}
	})
}

// Settings are the extension's own settings of these names, as far as they are set; none where the host has no settings.
func (e *Extension) Settings(ctx context.Context, keys ...string) (map[string]any, error) {
	if !e.Offers("services") {
		return map[string]any{}, nil
	}
	return e.host.Config(ctx, keys...)
}

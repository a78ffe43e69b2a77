package hilt

// What stands in the path of the user's words and of the conversation: hooks, transformers, compactors, and sections of the
// system prompt.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// SectionOption says more about a section of the system prompt.
type SectionOption func(members obj)

// Order puts sections in order: lower ones come first.
func Order(order int) SectionOption {
	return func(members obj) { members["order"] = order }
}

// TokenHint says about how many tokens a section has.
func TokenHint(tokens int) SectionOption {
	return func(members obj) { members["tokenHint"] = tokens }
}

// PromptSection adds a part to the system prompt, under its title.
func (e *Extension) PromptSection(title, content string, options ...SectionOption) error {
	if title == "" {
		return e.problem("a prompt section has a title")
	}
	members := obj{"title": title, "content": content}
	for _, option := range options {
		option(members)
	}
	return e.register("prompt_sections", title, registration{"prompt_section", members})
}

// MessageHook adds to what the model is told with a message of the user's: what it returns, unless it is empty.
func (e *Extension) MessageHook(add func(ctx context.Context, text string) (string, error), options ...HandlerOption) error {
	return e.addHook("message_hook", options, func(ctx context.Context, text string) (string, bool, error) {
		added, err := add(ctx, text)
		return added, false, err
	})
}

// InputTransformer rewrites what the user typed, or deals with it: then it is handled, and nothing is sent to the model.
func (e *Extension) InputTransformer(
	transform func(ctx context.Context, text string) (output string, handled bool, err error), options ...HandlerOption,
) error {
	return e.addHook("input_transformer", options, transform)
}

// Compactor makes the conversation shorter, when it is asked to or from threshold tokens on; 0 leaves that to the host.
func (e *Extension) Compactor(
	threshold int, compact func(ctx context.Context, messages []Message) ([]Message, error), options ...HandlerOption,
) error {
	name := chosen(options).name
	if name == "" {
		name = e.name
	}
	e.mu.Lock()
	e.compact = compact
	e.mu.Unlock()
	return e.register("compactors", name, registration{"compactor", obj{"name": name, "threshold": threshold}})
}

type hook struct {
	kind     string
	name     string
	priority int
	run      func(ctx context.Context, text string) (string, bool, error)
}

func (h hook) registration() registration {
	return registration{h.kind, obj{"name": h.name, "priority": h.priority}}
}

func (e *Extension) addHook(kind string, options []HandlerOption, run func(context.Context, string) (string, bool, error)) error {
	given := chosen(options)
	e.mu.Lock()
	if given.name == "" {
		given.name = e.name
		if count := len(e.hooksOf(kind)); count > 0 {
			given.name = fmt.Sprintf("%s-%d", e.name, count+1)
		}
	}
	added := hook{kind, given.name, given.priority, run}
	e.hooks = append(e.hooks, added)
	e.mu.Unlock()
	e.use(kind+"s", given.name)
	return e.late(kind+"s", func(*connection) []registration { return []registration{added.registration()} })
}

// hooksOf are those of a kind, in the order in which they are asked. The lock is held.
func (e *Extension) hooksOf(kind string) []hook {
	all := []hook{}
	for _, one := range e.hooks {
		if one.kind == kind {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(one, other hook) int { return one.priority - other.priority })
	return all
}

// hookRegistrations: piglet asks once for each and every question runs all, so there only the first is registered.
func (c *connection) hookRegistrations() []registration {
	c.ext.mu.Lock()
	defer c.ext.mu.Unlock()
	all := []registration{}
	for _, kind := range []string{"message_hook", "input_transformer"} {
		hooks := c.ext.hooksOf(kind)
		if !c.offers(kind + "s") {
			continue
		}
		if c.greeted.host.Name == "piglet" && len(hooks) > 1 {
			hooks = hooks[:1]
		}
		for _, one := range hooks {
			all = append(all, one.registration())
		}
	}
	return all
}

func (c *connection) hooks(kind string) []hook {
	c.ext.mu.Lock()
	defer c.ext.mu.Unlock()
	return c.ext.hooksOf(kind)
}

func (c *connection) hookMessage(q *asking) (any, *HostError) {
	var params struct {
		Message string `json:"message"`
	}
	if err := json.Unmarshal(q.params, &params); err != nil {
		return nil, badParams(err)
	}
	added := []string{}
	for _, one := range c.hooks("message_hook") {
		text, err := guarded(c.ext, "message hook", func() (string, error) {
			text, _, err := one.run(q.ctx, params.Message)
			return text, err
		})
		if err != nil {
			return nil, &HostError{codeFailed, err.Error()}
		}
		if text != "" {
			added = append(added, text)
		}
	}
	return present(obj{"injection": strings.Join(added, "\n")}), nil
}

func (c *connection) transformInput(q *asking) (any, *HostError) {
	var params struct {
		Input string `json:"input"`
	}
	if err := json.Unmarshal(q.params, &params); err != nil {
		return nil, badParams(err)
	}
	text := params.Input
	for _, one := range c.hooks("input_transformer") {
		handled := false
		output, err := guarded(c.ext, "input transformer", func() (output string, err error) {
			output, handled, err = one.run(q.ctx, text)
			return output, err
		})
		if err != nil {
			return nil, &HostError{codeFailed, err.Error()}
		}
		if handled {
			return obj{"output": "", "handled": true}, nil
		}
		text = output
	}
	return obj{"output": text, "handled": false}, nil
}

func (c *connection) compactMessages(q *asking) (any, *HostError) {
	var params struct {
		Messages []Message `json:"messages"`
	}
	if err := json.Unmarshal(q.params, &params); err != nil {
		return nil, badParams(err)
	}
	c.ext.mu.Lock()
	compact := c.ext.compact
	c.ext.mu.Unlock()
	if compact == nil {
		return nil, &HostError{codeBadParams, "there is no compactor"}
	}
	messages, err := guarded(c.ext, "compactor", func() ([]Message, error) { return compact(q.ctx, params.Messages) })
	if err != nil {
		return nil, &HostError{codeFailed, err.Error()}
	}
	if messages == nil {
		messages = []Message{}
	}
	return obj{"messages": messages}, nil
}

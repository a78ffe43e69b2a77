package hilt_test

// What the extension of a transcript answers and asks.

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	hilt "hilt-sdk"
)

// answer has the handler of a question return what the step says, and gives what the extension says of it. In a few cases
// that is said in other words:
//   - an error beside an action leaves the action out, which does not count;
//   - a tool that fails is a result that is an error, and an interceptor that fails is one that refuses;
//   - blocking what cannot be blocked is nothing;
//   - actions are told by themselves, before the answer.
func (p *player) answer(said obj) obj {
	id := fmt.Sprint(p.filled(said["id"]))
	v := p.open[id]
	if v == nil {
		p.t.Fatalf("there is no question %s", id)
	}
	delete(p.open, id)
	kind := str(v.question, "type") + str(v.question, "method")
	kind = strings.TrimPrefix(kind, "ext_request")
	result, _ := said["result"].(obj)
	if p.framed && kind != str(v.question, "method") {
		result = said
	}
	var out outcome
	if fault, failed := said["error"].(obj); failed {
		out.err = errors.New(str(fault, "message"))
	}
	switch kind {
	case "tool_call", "tool/execute":
		out.value = resultOf(result)
		if out.err != nil {
			content := []any{obj{"type": "text", "text": out.err.Error()}}
			said = obj{"id": said["id"], "result": obj{"content": content, "isError": true}}
		}
	case "command_invoked", "shortcut_invoked":
		if problem := str(said, "error"); problem != "" {
			out.err = errors.New(problem)
			said = obj{"type": "command_response", "id": said["id"], "error": problem}
		}
		out.value = p.actionOf(said)
	case "command/execute":
	case "shortcut/handle", "event/dispatch":
		if action, is := result["action"].(obj); is {
			p.act(v, action)
			said["result"] = obj{"action": nil}
		}
	case "event_intercept", "interceptor/before", "interceptor/event", "interceptor/after":
		out.value = verdictOf(str(v.question, "event"), result)
		if out.err != nil {
			why := obj{"$contains": out.err.Error()}
			said = obj{"id": said["id"], "result": obj{"allow": false, "reason": why}}
			if kind == "interceptor/before" {
				said["result"] = obj{"allow": false, "preview": why}
			}
		} else if v.question["event"] == "before_agent_start" && said["block"] == true {
			said = obj{"type": said["type"], "id": said["id"], "block": "$absent"}
		}
	case "messageHook/onMessage":
		out.value = str(result, "injection")
	case "inputTransformer/transform":
		out.value = result
	case "compact/execute":
		encoded, _ := json.Marshal(result["messages"])
		var messages []hilt.Message
		p.check(json.Unmarshal(encoded, &messages))
		out.value = messages
	case "provider/stream":
		if message, is := result["message"].(obj); is {
			p.do(v, func() { p.say(v, message) })
			delete(message, "timestamp") // it is now
		}
	default:
		p.t.Fatalf("nobody knows how to answer %s", kind)
	}
	v.answer <- out
	return said
}

func resultOf(told obj) hilt.Result {
	result := hilt.Result{
		IsError: told["is_error"] == true || told["isError"] == true, ErrorCode: str(told, "errorCode"), ErrorHint: str(told, "errorHint"),
		Structured: told["structured_content"], Activate: texts(told, "activate_tools"),
	}
	content, _ := told["content"].([]any)
	for _, one := range content {
		block := one.(obj)
		data, _ := base64.StdEncoding.DecodeString(str(block, "data"))
		result.Content = append(result.Content, hilt.Content{Text: str(block, "text"), Data: data, MIME: str(block, "mime_type") + str(block, "mime")})
	}
	return result
}

func (p *player) actionOf(told obj) hilt.Action {
	switch str(told, "action") {
	case "display":
		return hilt.Show(str(told, "display"))
	case "insert":
		return hilt.Insert(str(told, "insert"))
	case "prompt":
		return hilt.Prompt(str(told, "prompt"))
	case "tool_prompt":
		return hilt.ToolPrompt(str(told, "tool_name"), told["tool_args"], str(told, "prompt"))
	case "open_panel":
		spec := told["open_panel"].(obj)
		return hilt.OpenPanel(p.panel(str(spec, "id"), spec))
	}
	return hilt.Nothing()
}

func verdictOf(event string, told obj) hilt.Verdict {
	for _, key := range []string{"modified_args", "args"} {
		if args, is := told[key].(obj); is {
			return hilt.Rewrite(args)
		}
	}
	for _, key := range []string{"replace_text", "system_prompt", "text", "systemPrompt", "content"} {
		if text, is := told[key].(string); is {
			return hilt.Replace(text)
		}
	}
	if details, is := told["details"].(obj); is {
		return hilt.Replace(str(details["content"].([]any)[0].(obj), "text"))
	}
	if told["block"] == true || told["allow"] == false {
		return hilt.Block(str(told, "reason") + str(told, "preview"))
	}
	return hilt.Allow()
}

// act has a handler do an action, which is told before its answer.
func (p *player) act(v *visit, action obj) {
	payload := action["payload"].(obj)
	said := obj{"method": action["type"], "params": payload}
	if p.framed && action["type"] == "notify" {
		said = obj{"type": "notify", "message": payload["message"]}
	}
	p.do(v, func() { p.tellHost(said) })
	p.match(said, p.next(fmt.Sprint(said)))
}

// ask has the extension ask the host, and learns the id it took.
func (p *player) ask(said obj, method string, params obj) {
	key := fmt.Sprint(p.filled(said["id"]))
	ctx, cancel := context.WithCancel(context.Background())
	p.t.Cleanup(cancel)
	p.cancels[key] = cancel
	if said["type"] == "call_tool" {
		args := said["args"]
		if parent := fmt.Sprint(p.filled(said["parent_id"])); said["parent_id"] != nil {
			go p.open[parent].call.CallToolContext(ctx, str(said, "name"), args)
		} else {
			go p.ext.CallTool(ctx, str(said, "name"), args)
		}
	} else {
		asked, _ := p.filled(params).(obj)
		if method == "host/subscribe" && asked["topic"] != "" {
			go p.ext.Host().Subscribe(ctx, str(asked, "topic"), func(json.RawMessage) { p.hear("bus") })
		} else {
			go p.ext.Host().Request(ctx, method, asked)
		}
	}
	line := p.next(fmt.Sprint(said))
	p.own[key] = line["id"]
	pattern := obj{}
	for name, value := range said {
		if name != "id" {
			pattern[name] = value
		}
	}
	p.match(pattern, line)
}

// How the player reads what a transcript's extension says: as calls of the SDK, and as what handlers return.

import { Block, Handled, Panel, Replace, Rewrite } from "../src/index.js";

export class Shown extends Panel {
  constructor(look, lines = []) {
    super(look);
    this.lines = lines;
  }

  render() {
    return this.lines;
  }

  onResize() {
    // In the transcript that has a drawing after a resize, this is what is drawn.
    if (this.title === "Tasks" && this.lines.length === 1) this.lines = ["two"];
  }
}

export const METHODS = {
  tool_call: "tool/execute",
  command_invoked: "command/execute",
  shortcut_invoked: "shortcut/handle",
  event_intercept: "interceptor/event",
};

export function readable(step) {
  if (!step.ext_raw) return step;
  const text = step.ext_raw.replace(/"?\$\{(#?\w+)\}"?/g, '"$$$1"');
  return { ext: JSON.parse(text) };
}

/** A frame as a method. */
export function told(frame) {
  const { type, id, ...rest } = frame;
  switch (type) {
    case "host_notify":
    case "host_request":
      return [frame.method, frame.params];
    case "call_tool":
      return ["host/executeTool", { name: frame.name, args: frame.args, callId: frame.parent_id }];
    case "submit":
    case "submit_slash":
      return ["sendMessage", { content: frame.text }];
    case "tool_progress":
      return ["tool/progress", { callId: id, text: frame.text }];
    case "open_panel":
      return ["panel/open", frame.panel];
    case "panel_render":
    case "panel_close":
      return [type.replace("_", "/"), rest];
    case "call_tool_cancel":
      return [type, { id }];
    default:
      return [type, rest];
  }
}

/** Several subscriptions are one. */
export function joined(messages) {
  const subscriptions = messages.filter(({ type }) => type === "subscribe");
  const others = messages.filter(({ type }) => type !== "subscribe").map(optional);
  if (subscriptions.length === 0) return others;
  const all = (member) => [...new Set(subscriptions.flatMap((one) => one[member] ?? []))].sort();
  return [...others, { type: "subscribe", events: all("events"), intercept: all("intercept") }];
}

/** A tool without a schema takes anything, whichever way that is said. */
export function optional(message) {
  const open = message.method === "register/tool" && message.params.parameters === null;
  return open ? { ...message, params: { ...message.params, parameters: "$any" } } : message;
}

/** A guard that fails refuses in words, where a raw one may answer with an error. */
export function refusal(method, { jsonrpc, id, error }) {
  const why = { $contains: error.message };
  return { jsonrpc, id, result: { allow: false, [method === "interceptor/before" ? "preview" : "reason"]: why } };
}

export function withId(pattern, id) {
  if (pattern.params?.id !== undefined) return { ...pattern, params: { id } };
  return { ...pattern, id };
}

export function shownIn({ title, lines = [], footer = "" }) {
  return { ...(title === undefined ? {} : { title }), lines, footer };
}

export function returned(method, result, framed) {
  switch (method) {
    case "interceptor/before":
      return result.allow === false ? new Block(result.preview) : result.args ? new Rewrite(result.args) : undefined;
    case "interceptor/after":
      return result.content ?? result.details?.content?.[0].text;
    case "interceptor/event":
      if (framed ? result.block : result.allow === false) return new Block(result.reason);
      if (result.modified_args) return new Rewrite(result.modified_args);
      if (result.replace_text ?? result.text) return new Replace(result.replace_text ?? result.text);
      return result.system_prompt ?? result.systemPrompt;
    case "messageHook/onMessage":
      return result.injection;
    case "inputTransformer/transform":
      return result.handled ? new Handled() : result.output;
    default:
      return result.messages;
  }
}

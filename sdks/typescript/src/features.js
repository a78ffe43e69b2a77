// What an extension may use, and how it knows that the host offers it: the same table as spec/features.json.

/**
 * `words` is what it is called when it is missing. A rule is `base` (every host of that dialect), `none` (no host of
 * it), or names of capabilities, separated by `|`, one of which the host announces.
 *
 * @type {Readonly<Record<string, { words: string, frames: string, jsonrpc: string }>>}
 */
export const FEATURES = {
  tools: { words: "tools", frames: "base", jsonrpc: "base" },
  commands: { words: "commands", frames: "base", jsonrpc: "base" },
  events: { words: "events", frames: "base", jsonrpc: "base" },
  more_events: { words: "events beyond the first five", frames: "call_tool", jsonrpc: "base" },
  raw_events: { words: "events of the other dialect", frames: "register", jsonrpc: "base" },
  "intercept.tool_call": { words: "interception of tool calls", frames: "base", jsonrpc: "base" },
  "intercept.turn_start": { words: "interception of turns", frames: "base", jsonrpc: "interceptor/event" },
  "intercept.assistant_message": { words: "interception of answers", frames: "base", jsonrpc: "interceptor/event" },
  "intercept.before_agent_start": {
    words: "interception of the system prompt",
    frames: "call_tool",
    jsonrpc: "interceptor/event",
  },
  "intercept.tool_result": { words: "interception of results", frames: "register", jsonrpc: "interceptor/content" },
  priorities: { words: "priorities of interceptors", frames: "register", jsonrpc: "base" },
  notes: { words: "notes", frames: "base", jsonrpc: "base" },
  clear_notes: { words: "taking notes away", frames: "call_tool", jsonrpc: "none" },
  panels: { words: "panels", frames: "base", jsonrpc: "panel/open" },
  open_panel: { words: "panels that open by themselves", frames: "call_tool", jsonrpc: "panel/open" },
  submit: { words: "prompts by extensions", frames: "call_tool", jsonrpc: "base" },
  tool_prompt: { words: "prompts with a tool's result", frames: "call_tool", jsonrpc: "base" },
  progress: { words: "progress of tools", frames: "tool_progress", jsonrpc: "tool/progress" },
  cancel: { words: "cancellation of calls", frames: "tool_cancel|call_tool", jsonrpc: "base" },
  call_tool: { words: "calls of other tools", frames: "call_tool", jsonrpc: "base" },
  structured_content: { words: "structured results", frames: "call_tool", jsonrpc: "none" },
  deferred_tools: { words: "deferred tools", frames: "call_tool", jsonrpc: "base" },
  activate_tools: { words: "tools that activate others", frames: "call_tool", jsonrpc: "base" },
  late_registration: { words: "registration after the start", frames: "base", jsonrpc: "register/late" },
  prompt_sections: { words: "prompt sections", frames: "register", jsonrpc: "base" },
  shortcuts: { words: "shortcuts", frames: "register", jsonrpc: "base" },
  message_hooks: { words: "message hooks", frames: "register", jsonrpc: "base" },
  input_transformers: { words: "input transformers", frames: "register", jsonrpc: "base" },
  compactors: { words: "compactors", frames: "register", jsonrpc: "base" },
  providers: { words: "providers", frames: "register", jsonrpc: "base" },
  provider_models: { words: "models of a provider's own", frames: "register", jsonrpc: "register/models" },
  services: { words: "host services", frames: "host_request", jsonrpc: "base" },
  bus: { words: "messages among extensions", frames: "host_request", jsonrpc: "base" },
  unsubscribe: { words: "ending a subscription", frames: "host_request", jsonrpc: "host/unsubscribe" },
  show: { words: "messages to the user", frames: "host_notify", jsonrpc: "base" },
  widgets: { words: "widgets", frames: "host_notify", jsonrpc: "base" },
  overlays: { words: "overlays", frames: "host_notify", jsonrpc: "base" },
  status: { words: "words in the status line", frames: "host_notify", jsonrpc: "setStatus" },
  input_text: { words: "text in the user's input", frames: "host_notify", jsonrpc: "base" },
  steer: { words: "steering", frames: "host_notify", jsonrpc: "base" },
  abort: { words: "stopping the turn", frames: "host_notify", jsonrpc: "base" },
};

/**
 * @param {string} feature
 * @param {import("./protocol.js").Greeting} greeting
 */
export function offered(feature, greeting) {
  const row = FEATURES[feature];
  if (row === undefined) {
    throw new TypeError(
      `there is no feature ${JSON.stringify(feature)}; those known are ${Object.keys(FEATURES).join(", ")}`,
    );
  }
  const rule = row[greeting.host.dialect];
  if (rule === "base" || rule === "none") return rule === "base";
  return rule.split("|").some((name) => greeting.capabilities.has(name));
}

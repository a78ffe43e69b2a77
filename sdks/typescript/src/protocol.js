// Both dialects: lines of the host's into values, and what is to be said into lines. Everything is named as in the
// jsonrpc dialect, which has a method for everything; `frames` translates. Pure: nothing is kept, nothing is sent.

/** @typedef {Record<string, any>} Members */

export const UNKNOWN_METHOD = -32601;
export const BAD_PARAMS = -32602;
export const FAILED = -32603;

/** @type {import("./protocol.js").Dialect} */
export const frames = {
  name: "frames",

  read(frame) {
    const { type, id } = frame;
    switch (type) {
      case "hello_ack":
        return { kind: "greeting", method: type, params: frame };
      case "tool_call":
        return question(type, id, "tool/execute", { callId: id, name: frame.name, args: frame.args });
      case "command_invoked":
        return question(type, id, "command/execute", { name: frame.name, args: frame.args ?? "" });
      case "shortcut_invoked":
        return question(type, id, "shortcut/handle", { key: frame.key });
      case "event_intercept":
        return question(type, id, "interceptor/event", framedQuestion(frame));
      case "ext_request":
        return question(type, id, String(frame.method), frame.params ?? {});
      case "ext_notify":
        return { kind: "notice", method: String(frame.method), params: frame.params ?? {} };
      case "tool_cancel":
        return { kind: "notice", method: "$/cancelRequest", params: { id } };
      case "tool_result":
        return { kind: "response", method: "", id, params: {}, result: numberedResult(frame) };
      case "host_response":
        return { kind: "response", method: "", id, params: {}, result: frame.result, fault: frame.error ?? undefined };
      case "panel_key":
        return { kind: "notice", method: "panel/key", params: frame };
      case "panel_resize":
        return { kind: "notice", method: "panel/resize", params: frame };
      case "panel_close":
        return { kind: "notice", method: "panel/closed", params: frame };
      case "event":
      case "shutdown":
        return { kind: "notice", method: type, params: frame };
      default:
        return { kind: "unknown", method: String(type), params: {} };
    }
  },

  greeting({ params }) {
    const hilt = params.host === "hilt";
    const host = { name: hilt ? "hilt" : "zot", version: textOf(hilt ? params.host_version : params.zot_version) };
    return {
      host: { ...host, dialect: "frames" },
      capabilities: new Set(listOf(params.capabilities)),
      cwd: textOf(params.cwd),
      dataDir: textOf(params.data_dir),
      extensionDir: textOf(params.extension_dir),
      provider: textOf(params.provider),
      model: textOf(params.model),
    };
  },

  hello(name, version) {
    return {
      type: "hello",
      name,
      version,
      capabilities: ["commands", "tools", "events", "panels", "tool_cancel", "call_tool"],
    };
  },

  register(kind, members) {
    if (kind === "tool") {
      const { parameters, promptHint: _, interruptBehavior: __, ...rest } = members;
      return { type: "register_tool", ...snaked(present(rest)), schema: parameters };
    }
    if (kind === "command") {
      return { type: "register_command", ...present({ name: members.name, description: members.description }) };
    }
    return kind === "subscribe" ? { type: kind, ...present(members) } : { type: "register", kind, ...present(members) };
  },

  answer(asked, value) {
    const { id } = asked;
    switch (asked.frame) {
      case "tool_call":
        return { type: "tool_result", id, ...framedResult(value) };
      case "command_invoked":
      case "shortcut_invoked":
        return { type: "command_response", id, ...value };
      case "event_intercept":
        return { type: "event_intercept_response", id, ...framedVerdict(value) };
      default:
        return { type: "ext_response", id, result: value };
    }
  },

  refuse(asked, code, message) {
    const { id } = asked;
    switch (asked.frame) {
      case "tool_call":
        return { type: "tool_result", id, content: [{ type: "text", text: message }], is_error: true };
      case "command_invoked":
      case "shortcut_invoked":
        return { type: "command_response", id, error: message };
      case "event_intercept":
        return { type: "event_intercept_response", id, block: true, reason: message };
      default:
        return { type: "ext_response", id, error: { code, message } };
    }
  },

  tell(method, params) {
    switch (method) {
      case "notify":
        return { type: "notify", ...present(params) };
      case "clear_notes":
        return { type: "clear_notes" };
      case "sendMessage":
        return { type: params.content.trimStart().startsWith("/") ? "submit_slash" : "submit", text: params.content };
      case "tool/progress":
        return { type: "tool_progress", id: params.callId, text: params.text };
      case "panel/open": {
        const { panel_id: id, ...rest } = params;
        return { type: "open_panel", panel: { id, ...rest } };
      }
      case "panel/render":
        return { type: "panel_render", ...params };
      case "panel/close":
        return { type: "panel_close", ...params };
      default:
        return { type: "host_notify", method, params };
    }
  },

  ask(number, method, params) {
    const id = `q${number}`;
    if (method !== "host/executeTool") return { type: "host_request", id, method, params };
    const parent = params.callId ? { parent_id: params.callId } : {};
    return { type: "call_tool", id, name: params.name, args: params.args, ...parent };
  },

  takeBack(number, method) {
    const id = `q${number}`;
    if (method === "host/executeTool") return { type: "call_tool_cancel", id };
    return { type: "host_notify", method: "$/cancelRequest", params: { id } };
  },

  numberOf(id) {
    return Number(String(id).slice(1));
  },
};

/** @type {import("./protocol.js").Dialect} */
export const jsonrpc = {
  name: "jsonrpc",

  read(message) {
    const { id, method, params } = message;
    const numbered = id !== undefined && id !== null;
    const members = isObject(params) ? params : {};
    if (!numbered) return { kind: method ? "notice" : "unknown", method: String(method ?? ""), params: members };
    if (!method) {
      return {
        kind: "response",
        method: "",
        id,
        params: {},
        result: message.result,
        fault: message.error ?? undefined,
      };
    }
    if (method === "initialize") return { kind: "greeting", method, id, params: members };
    return question("request", id, String(method), params ?? {});
  },

  greeting({ params }) {
    const hilt = params.host === "hilt";
    return {
      host: { name: hilt ? "hilt" : "piglet", version: textOf(params.hostVersion), dialect: "jsonrpc" },
      capabilities: new Set(listOf(params.capabilities)),
      cwd: textOf(params.cwd),
      dataDir: textOf(params.configDir),
      extensionDir: "",
      provider: "",
      model: "",
    };
  },

  register(kind, members) {
    const given = { ...members };
    if (kind === "tool") {
      const { name, description, parameters, promptHint, interruptBehavior } = members;
      const deferred = members.deferred || members.exposure === "deferred";
      const tool = { name, description, parameters, promptHint, deferred, interruptBehavior };
      return notification("register/tool", present(tool));
    }
    return notification(`register/${cameled(kind)}`, present(given));
  },

  answer({ id, method }, value) {
    return { jsonrpc: "2.0", id, result: method === "tool/execute" ? numberedAnswer(value) : value };
  },

  refuse({ id }, code, message) {
    return { jsonrpc: "2.0", id, error: { code, message } };
  },

  tell(method, params) {
    return notification(method, params);
  },

  ask(number, method, params) {
    return { jsonrpc: "2.0", id: number, method, params };
  },

  takeBack(number) {
    return notification("$/cancelRequest", { id: number });
  },

  numberOf(id) {
    return Number(id);
  },

  hello() {
    return undefined;
  },
};

/**
 * @param {string} frame
 * @param {string | number} id
 * @param {string} method
 * @param {any} params
 * @returns {import("./protocol.js").Incoming}
 */
function question(frame, id, method, params) {
  return { kind: "question", frame, id, method, params };
}

/**
 * @param {string} method
 * @param {Members} params
 */
function notification(method, params) {
  return { jsonrpc: "2.0", method, params };
}

/** @param {Members} frame what `event_intercept` asks, in the other dialect's words */
function framedQuestion(frame) {
  return {
    event: frame.event,
    toolName: frame.tool_name,
    args: frame.tool_args,
    callId: frame.tool_id,
    origin: frame.origin_extension,
    step: frame.step,
    text: frame.text,
    systemPrompt: frame.system_prompt,
    sessionId: frame.session_id,
    runId: frame.agent_run_id,
    cwd: frame.cwd,
    provider: frame.provider,
    model: frame.model,
  };
}

/** @param {Members} verdict */
function framedVerdict(verdict) {
  if (verdict.allow === false) return verdict.reason ? { block: true, reason: verdict.reason } : { block: true };
  return given({ modified_args: verdict.args, replace_text: verdict.text, system_prompt: verdict.systemPrompt });
}

/**
 * The frames dialect has no place for an error's code and hint, so they are part of the text, as hosts of the other
 * dialect put them there.
 *
 * @param {import("./values.js").Result} result
 */
function framedResult(result) {
  const { isError, structured, activate, code, hint } = result;
  /** @type {Members[]} */
  const content = result.content.map((block) =>
    block.type === "image" ? { type: "image", mime_type: block.mime, data: block.data } : block,
  );
  const words = `${code ? `[error:${code}] ` : ""}${result.text}${hint ? `\nhint: ${hint}` : ""}`;
  const pictures = content.filter((block) => block.type !== "text");
  return {
    content: code || hint ? [{ type: "text", text: words }, ...pictures] : content,
    ...present({ is_error: isError || Boolean(code), activate_tools: activate }),
    ...given({ structured_content: structured }),
  };
}

/** @param {import("./values.js").Result} result */
function numberedAnswer({ content, isError, code, hint }) {
  return { content, ...present({ isError: isError || Boolean(code), errorCode: code, errorHint: hint }) };
}

/** @param {Members} frame a `tool_result` of the host's, as `host/executeTool` would answer */
function numberedResult(frame) {
  const content = listOf(frame.content).map((block) => {
    const { mime_type: mime, ...rest } = block;
    return mime === undefined ? rest : { ...rest, mime };
  });
  return { content, isError: frame.is_error ?? false, truncated: frame.truncated ?? false };
}

/**
 * Without members at their default, which neither dialect writes.
 *
 * @param {Members} members
 */
export function present(members) {
  const kept = Object.entries(members).filter(
    ([, value]) => value !== undefined && value !== "" && value !== 0 && value !== false && value?.length !== 0,
  );
  return Object.fromEntries(kept);
}

/**
 * Without members that are not given; an empty one counts.
 *
 * @param {Members} members
 */
export function given(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** @param {string} word */
export function cameled(word) {
  return word.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
}

/** @param {Members} members */
function snaked(members) {
  const spelt = (/** @type {string} */ word) => word.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [spelt(name), value]));
}

/**
 * @param {unknown} value
 * @returns {value is Members}
 */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param {unknown} value */
function textOf(value) {
  return typeof value === "string" ? value : "";
}

/** @param {unknown} value */
function listOf(value) {
  return Array.isArray(value) ? value : [];
}

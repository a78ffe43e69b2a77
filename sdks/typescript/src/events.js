// Events under one set of names, those of the frames dialect, and what the jsonrpc dialect has for them.

import { cameled, isObject } from "./protocol.js";

/** The names that every host of the frames dialect tells. */
export const FIRST_EVENTS = ["session_start", "turn_start", "assistant_message", "tool_call", "turn_end"];

/** Those that came later. */
export const MORE_EVENTS = [
  "session_end",
  "user_prompt_submit",
  "tool_result",
  "tool_confirmation_requested",
  "permission_decision",
  "pre_compact",
  "post_compact",
  "subagent_start",
  "subagent_stop",
];

/** What may be intercepted. */
export const INTERCEPTED = ["tool_call", "turn_start", "assistant_message", "before_agent_start", "tool_result"];

/**
 * From which events of the jsonrpc dialect each is made. Those that are missing here have no counterpart there.
 *
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const MADE_FROM = {
  user_prompt_submit: ["EventMessagePre"],
  turn_start: ["EventAgentStart", "EventTurnStart"],
  assistant_message: ["EventStreamDone"],
  tool_call: ["EventToolStart"],
  tool_result: ["EventToolEnd"],
  turn_end: ["EventTurnEnd"],
  post_compact: ["EventCompact"],
};

/** @type {Record<string, string>} */
const STOPS = { stop: "end", toolUse: "tool_use", length: "length", error: "error", aborted: "aborted" };

/** What members are that were not told. They are not the event's own. */
const UNTOLD = {
  text: "",
  toolId: "",
  toolName: "",
  toolArgs: undefined,
  stop: "",
  error: "",
  reason: "",
  status: "",
  sessionId: "",
  cwd: "",
  step: 0,
  sequence: 0,
  messageCount: 0,
  tokenEstimate: 0,
};

/** Something that happened. */
export class Event {
  /**
   * @param {string} name
   * @param {Record<string, any>} members
   */
  constructor(name, members) {
    Object.assign(this, members);
    this.name = name;
  }
}
Object.assign(Event.prototype, UNTOLD);

/**
 * An `event` frame.
 *
 * @param {Record<string, any>} frame
 */
export function framedEvent(frame) {
  const { type: _, event, ...members } = frame;
  return new Event(String(event), spelt(members));
}

/**
 * An event of the jsonrpc dialect as it is.
 *
 * @param {string} type
 * @param {unknown} data
 */
export function rawEvent(type, data) {
  return new Event(type, { data: isObject(data) ? data : {} });
}

/** Makes the events of the frames dialect out of those of the other. */
export class Unifier {
  constructor() {
    this.step = 0;
  }

  /**
   * @param {string} type
   * @param {Record<string, any>} data
   * @returns {Event[]}
   */
  events(type, data) {
    switch (type) {
      case "EventAgentStart":
        this.step = 0;
        return [];
      case "EventMessagePre":
        return [new Event("user_prompt_submit", { text: data.Content ?? "" })];
      case "EventTurnStart":
        this.step += 1;
        return [new Event("turn_start", { step: this.step })];
      case "EventStreamDone":
        return [new Event("assistant_message", { text: textsOf(data.Message?.content) })];
      case "EventToolStart":
        return [new Event("tool_call", toolMembers(data))];
      case "EventToolEnd":
        return [new Event("tool_result", { ...toolMembers(data), ...ended(data) })];
      case "EventTurnEnd": {
        const answer = data.Assistant;
        const stop = answer ? (STOPS[answer.stopReason] ?? "end") : "error";
        return [new Event("turn_end", { stop, ...(answer?.error ? { error: answer.error } : {}) })];
      }
      case "EventCompact":
        return [
          new Event("post_compact", {
            messageCount: data.After ?? 0,
            tokenEstimate: data.TokensAtCompact ?? 0,
            status: "completed",
          }),
        ];
      default:
        return [];
    }
  }
}

/** @param {Record<string, any>} data */
function toolMembers(data) {
  return { toolId: data.ToolCallID ?? "", toolName: data.ToolName ?? "", toolArgs: data.Args ?? {} };
}

/** @param {Record<string, any>} data */
function ended(data) {
  const isError = data.IsError === true;
  const result = data.Result;
  const content = Array.isArray(result) ? result : Array.isArray(result?.content) ? result.content : [];
  return { status: isError ? "failed" : "completed", executed: true, result: { content, isError } };
}

/** @param {unknown} content */
function textsOf(content) {
  if (!Array.isArray(content)) return "";
  return content.flatMap((block) => (typeof block?.text === "string" ? [block.text] : [])).join("\n");
}

/** @param {Record<string, any>} members */
function spelt(members) {
  const named = Object.entries(members).map(([name, value]) => [cameled(name), value]);
  const whole = Object.fromEntries(named);
  if (isObject(whole.result) && "is_error" in whole.result) {
    const { is_error: isError, ...rest } = whole.result;
    whole.result = { ...rest, isError };
  }
  return whole;
}

// What interceptors are asked about, and what their answers mean.

import { isObject } from "./protocol.js";
import { Block, Replace, Result, Rewrite } from "./values.js";

/** What an interceptor is asked about. Which members mean something depends on the event. */
export class Intercepted {
  /**
   * @param {string} event
   * @param {any} params
   * @param {AbortSignal} signal
   */
  constructor(event, params, signal) {
    this.event = event;
    this.tool = params.toolName ?? "";
    this.args = params.args ?? {};
    this.id = params.callId ?? "";
    this.origin = params.origin ?? "";
    this.step = params.step ?? 0;
    this.systemPrompt = params.systemPrompt ?? "";
    this.content = params.content ?? [];
    this.isError = params.isError ?? false;
    this.text = params.text ?? new Result({ content: this.content }).text;
    this.signal = signal;
  }

  /** @param {{ content: any, isError?: boolean }} changed */
  amend({ content, isError }) {
    this.content = typeof content === "string" ? [{ type: "text", text: content }] : content;
    this.isError = isError ?? this.isError;
    this.text = new Result({ content: this.content }).text;
  }
}

/**
 * @param {string} event
 * @param {unknown} said
 */
export function judged(event, said) {
  if (said === undefined || said === null) return {};
  if (said instanceof Block) return said.reason ? { allow: false, reason: said.reason } : { allow: false };
  if (said instanceof Rewrite && event === "tool_call" && isObject(said.args)) return { args: said.args };
  if (said instanceof Replace && event === "assistant_message") return { text: said.text };
  if (typeof said === "string" && event === "assistant_message") return { text: said };
  if (typeof said === "string" && event === "before_agent_start") return { systemPrompt: said };
  throw strange(said);
}

/** @param {unknown} said */
export function amended(said) {
  if (typeof said === "string") return { content: said };
  if (said instanceof Result) return { content: said.content, isError: said.isError };
  throw strange(said);
}

/**
 * A result's blocks, from wherever the host has put them.
 *
 * @param {unknown} content
 * @param {any} details
 */
export function contentOf(content, details) {
  if (Array.isArray(content)) return content;
  if (Array.isArray(details?.content)) return details.content;
  const text = typeof details === "string" ? details : (details?.content ?? details?.output);
  return typeof text === "string" ? [{ type: "text", text }] : [];
}

/**
 * The changed result where the host had put the old one.
 *
 * @param {any} details
 * @param {any} content
 */
export function inDetails(details, content) {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const { text } = new Result({ content: blocks });
  if (typeof details === "string") return text;
  if (typeof details?.content === "string") return { ...details, content: text };
  if (typeof details?.output === "string") return { ...details, output: text };
  return { ...details, content: blocks };
}

/** @param {unknown} value */
export function strange(value) {
  const what =
    typeof value === "object" ? (value?.constructor?.name ?? "an object") : `${typeof value} ${String(value)}`;
  return new TypeError(`the handler returned ${what}, which means nothing here`);
}

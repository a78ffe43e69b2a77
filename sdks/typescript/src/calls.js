// A tool call as its handler sees it, and calls of other tools.

import { Result } from "./values.js";

/** A tool call, for the tool that is called. */
export class Call {
  #session;

  /**
   * @param {import("./session.js").Session} session
   * @param {{ id: string, name: string }} asked
   * @param {AbortSignal} signal
   */
  constructor(session, { id, name }, signal) {
    this.#session = session;
    this.id = id;
    this.name = name;
    this.signal = signal;
  }

  get cancelled() {
    return this.signal.aborted;
  }

  /**
   * Shows the next piece of output. Hosts that cannot show it are not told.
   * @param {string} text
   */
  progress(text) {
    if (this.#session.offers("progress")) this.#session.tell("tool/progress", { callId: this.id, text: String(text) });
  }

  /** @param {() => unknown} run */
  onCancel(run) {
    const guarded = () => void this.#session.guarded("onCancel", run);
    if (this.signal.aborted) guarded();
    else this.signal.addEventListener("abort", guarded, { once: true });
  }

  /**
   * Waits, and is true when the call was cancelled before that.
   * @param {number} seconds
   */
  async wait(seconds) {
    if (this.signal.aborted) return true;
    return new Promise((resolve) => {
      const timer = setTimeout(() => finish(false), seconds * 1000);
      const cancelled = () => finish(true);
      const finish = (/** @type {boolean} */ ended) => {
        clearTimeout(timer);
        this.signal.removeEventListener("abort", cancelled);
        resolve(ended);
      };
      this.signal.addEventListener("abort", cancelled, { once: true });
    });
  }

  /**
   * Calls another tool on behalf of this call.
   *
   * @param {string} name
   * @param {Record<string, unknown>} [args]
   * @param {{ signal?: AbortSignal, timeout?: number }} [options]
   */
  callTool(name, args = {}, options = {}) {
    return callTool(this.#session, name, args, this.id, { signal: this.signal, ...options });
  }
}

/**
 * @param {import("./session.js").Session} session
 * @param {string} name
 * @param {Record<string, unknown>} args
 * @param {string} parent
 * @param {{ signal?: AbortSignal, timeout?: number }} options
 */
export async function callTool(session, name, args, parent, options) {
  const callId = parent ? { callId: parent } : {};
  const told = await session.request("host/executeTool", { name, args, ...callId }, options);
  const { content = [], isError = false, errorCode = "", errorHint = "" } = told;
  return new Result({ content, isError, code: errorCode, hint: errorHint });
}

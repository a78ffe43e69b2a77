// Answering as a model: the request as the handler sees it, and the reply that it streams.

/** One answer that a model is asked for. */
export class Request {
  /** @param {Record<string, any>} params */
  constructor(params) {
    this.model = params.model ?? {};
    this.system = params.system ?? "";
    this.messages = params.messages ?? [];
    this.tools = params.tools ?? [];
    this.options = params.options ?? {};
  }

  /** What the user said last. */
  get text() {
    const said = this.messages.findLast(
      (/** @type {any} */ one) => (one.role ?? "user") === "user" && !("toolCallId" in one),
    );
    const content = said?.content || said?.blocks || "";
    if (typeof content === "string") return content;
    return content
      .map((/** @type {any} */ block) => block.text ?? "")
      .filter(Boolean)
      .join("\n");
  }
}

/** What the model says. It is complete when the handler returns. */
export class Reply {
  /**
   * @param {number} requestId
   * @param {AbortSignal} signal
   * @param {(params: Record<string, any>) => Promise<void>} send
   */
  constructor(requestId, signal, send) {
    this.requestId = requestId;
    this.signal = signal;
    this.send = send;
    /** @type {Record<string, any>[]} */
    this.content = [];
    this.used = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, cost: 0 };
    /** Why it ended, when it was neither complete nor a call of tools: `length`, for example. */
    this.stopReason = "";
  }

  get cancelled() {
    return this.signal.aborted;
  }

  /**
   * More of the text. Resolves when there is room for more.
   * @param {string} delta
   */
  text(delta) {
    return this.#piece("text", delta);
  }

  /**
   * More of the thinking.
   * @param {string} delta
   */
  thinking(delta) {
    return this.#piece("thinking", delta);
  }

  /**
   * More of the arguments of a call, as JSON text, to be shown before the call is complete.
   *
   * @param {string} id
   * @param {string} name
   * @param {string} delta
   */
  toolCallDelta(id, name, delta) {
    const tool = { id, name, arguments: "" };
    return this.send({ requestId: this.requestId, type: "toolcall_delta", index: this.content.length, delta, tool });
  }

  /**
   * A call of one of the request's tools.
   * @param {string} name
   * @param {Record<string, unknown>} args
   * @param {string} [id]
   */
  toolCall(name, args, id = `call_${this.requestId}_${this.content.length}`) {
    this.content.push({ type: "tool_call", id, name, arguments: args });
    const tool = { id, name, arguments: JSON.stringify(args) };
    return this.send({ requestId: this.requestId, type: "toolcall_end", index: this.content.length - 1, tool });
  }

  /**
   * What was used, in tokens.
   * @param {number} input
   * @param {number} output
   */
  usage(input, output) {
    this.used = { ...this.used, inputTokens: input, outputTokens: output };
  }

  /**
   * @param {"text" | "thinking"} kind
   * @param {string} delta
   */
  #piece(kind, delta) {
    const last = this.content.at(-1);
    if (delta === "") return Promise.resolve();
    if (last?.type === kind) last[kind] += delta;
    else this.content.push({ type: kind, [kind]: delta });
    return this.send({ requestId: this.requestId, type: `${kind}_delta`, index: this.content.length - 1, delta });
  }

  /**
   * @param {Request} request
   * @param {{ api: string, models: { id: string }[] }} provider
   */
  message(request, { api, models }) {
    const calls = this.content.some((block) => block.type === "tool_call");
    return {
      role: "assistant",
      content: this.content,
      model: request.model.id ?? models[0]?.id ?? "",
      provider: request.model.provider ?? api,
      usage: this.used,
      stopReason: this.stopReason || (calls ? "toolUse" : "stop"),
      timestamp: new Date().toISOString(),
    };
  }
}

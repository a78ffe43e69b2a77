// What an extension can ask the host for: one method here for each host service, under its last word.

/** How many messages of topics are kept whose subscription is not known yet. */
const EARLY_LIMIT = 256;

/** @typedef {import("./host.js").RequestOptions} RequestOptions */

export class Host {
  #session;
  /** @type {Map<number, (data: any, topic: string) => unknown>} */
  #subscriptions = new Map();
  /** @type {any[]} */
  #early = [];

  /** @param {() => import("./session.js").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /**
   * Asks for any service by its method.
   *
   * @param {string} method
   * @param {Record<string, any> | null} [params]
   * @param {RequestOptions} [options]
   * @returns {Promise<any>}
   */
  async request(method, params = {}, options = {}) {
    return this.#session().request(method, params ?? {}, options);
  }

  // Tools

  /** @param {"all" | "background_safe"} [filter] */
  async listTools(filter) {
    return (await this.request("host/listTools", filter ? { filter } : {})).tools ?? [];
  }

  async toolDefs() {
    return (await this.request("host/toolDefs")).tools ?? [];
  }

  /** @param {string} name */
  async activateTool(name) {
    await this.request("host/activateTool", { name });
  }

  /** @param {string[] | null} names */
  async setToolFilter(names) {
    await this.request("host/setToolFilter", { names });
  }

  // Configuration and keys

  /** @param {string[]} keys */
  async config(keys) {
    return (await this.request("host/config.get", { keys })).values ?? {};
  }

  /** @param {string} name */
  async readExtension(name) {
    return (await this.request("host/config.readExtension", { name })).content ?? "";
  }

  /** @param {string} provider */
  async authKey(provider) {
    return (await this.request("host/auth.getKey", { provider })).key ?? "";
  }

  async extensionsDir() {
    return (await this.request("host/extensionsDir")).path ?? "";
  }

  // Models at work

  /**
   * @param {string | { role?: string, content: string }[]} messages
   * @param {{ system?: string, model?: string, maxTokens?: number } & RequestOptions} [options]
   */
  async chat(messages, { signal, timeout, ...more } = {}) {
    const said = typeof messages === "string" ? [{ role: "user", content: messages }] : messages;
    return this.request("host/chat", { messages: said, ...more }, { signal, timeout });
  }

  /**
   * @param {string} task
   * @param {{ system?: string, tools?: string, model?: string, maxTurns?: number } & RequestOptions} [options]
   */
  async agentRun(task, { signal, timeout, ...more } = {}) {
    return this.request("host/agent.run", { task, ...more }, { signal, timeout });
  }

  /** @param {string} prompt */
  async runBackground(prompt) {
    await this.request("host/runBackground", { prompt });
  }

  async cancelBackground() {
    await this.request("host/cancelBackground");
  }

  async isBackgroundRunning() {
    return (await this.request("host/isBackgroundRunning")).running === true;
  }

  // The conversation

  async conversationMessages() {
    return (await this.request("host/conversationMessages")).messages ?? [];
  }

  /** @param {any[] | null} messages */
  async setConversationMessages(messages) {
    await this.request("host/setConversationMessages", { messages });
  }

  async llmSnapshot() {
    return this.request("host/llmSnapshot");
  }

  async lastAssistantText() {
    return (await this.request("host/lastAssistantText")).text ?? "";
  }

  /** @param {RequestOptions} [options] */
  async waitForIdle(options) {
    await this.request("host/waitForIdle", {}, options);
  }

  async hasCompactor() {
    return (await this.request("host/hasCompactor")).present === true;
  }

  async triggerCompact() {
    return this.request("host/triggerCompact");
  }

  async toggleStepMode() {
    return (await this.request("host/toggleStepMode")).on === true;
  }

  // Sessions

  async sessions() {
    return (await this.request("host/sessions")).sessions ?? [];
  }

  /** @param {string} path */
  async loadSession(path) {
    await this.request("host/loadSession", { path });
  }

  async forkSession() {
    return this.request("host/forkSession");
  }

  async sessionTitle() {
    return (await this.request("host/sessionTitle")).title ?? "";
  }

  /** @param {string} title */
  async setSessionTitle(title) {
    await this.request("host/setSessionTitle", { title });
  }

  async sessionStats() {
    return this.request("host/sessionStats");
  }

  /**
   * @param {string} kind
   * @param {unknown} [data]
   */
  async appendSessionEntry(kind, data) {
    await this.request("host/appendSessionEntry", data === undefined ? { kind } : { kind, data });
  }

  /**
   * @param {string} content
   * @param {"user" | "assistant"} [role]
   */
  async appendCustomMessage(content, role = "user") {
    await this.request("host/appendCustomMessage", { role, content });
  }

  /**
   * @param {string} targetId
   * @param {string} [label] without one it goes
   */
  async setLabel(targetId, label = "") {
    await this.request("host/setLabel", { targetId, label });
  }

  /** @param {string} entryId */
  async branchSession(entryId) {
    await this.request("host/branchSession", { entryId });
  }

  /**
   * @param {string} entryId
   * @param {string} [summary]
   */
  async branchSessionWithSummary(entryId, summary = "") {
    await this.request("host/branchSessionWithSummary", { entryId, summary });
  }

  async resetSessionLeaf() {
    await this.request("host/resetSessionLeaf");
  }

  async sessionEntryInfos() {
    return (await this.request("host/sessionEntryInfos")).entries ?? [];
  }

  async sessionFullTree() {
    return (await this.request("host/sessionFullTree")).nodes ?? [];
  }

  // The catalogue of models

  async availableModels() {
    return (await this.request("host/availableModels")).models ?? [];
  }

  /**
   * @param {string} modelId
   * @param {{ persistDefault?: boolean }} [options]
   */
  async switchModel(modelId, options = {}) {
    await this.request("host/switchModel", { modelId, ...options });
  }

  async syncModels() {
    return (await this.request("host/syncModels")).updated ?? 0;
  }

  /** @param {Record<string, { name?: string, contextWindow?: number, maxTokens?: number }>} overrides */
  async writeModels(overrides) {
    return (await this.request("host/writeModels", { overrides })).modelsWritten ?? 0;
  }

  // Asking the user

  /**
   * The id of the item, or null when it was dismissed.
   *
   * @param {string} title
   * @param {(string | { id: string, label: string, desc?: string })[]} items
   * @param {RequestOptions} [options]
   * @returns {Promise<string | null>}
   */
  async pick(title, items, options) {
    const listed = items.map((one) => (typeof one === "string" ? { id: one, label: one } : one));
    const { selected, cancelled } = await this.request("host/showPicker", { title, items: listed }, options);
    return cancelled || !selected ? null : selected;
  }

  /**
   * The choice, or null when it was dismissed.
   *
   * @param {string} prompt
   * @param {string[]} choices
   * @param {RequestOptions} [options]
   * @returns {Promise<string | null>}
   */
  async ask(prompt, choices, options) {
    const { selected, cancelled } = await this.request("host/askUser", { prompt, choices }, options);
    return cancelled ? null : selected;
  }

  async requestQuit() {
    await this.request("host/requestQuit");
  }

  async abort() {
    await this.request("host/abort");
  }

  // What is registered

  async commands() {
    return (await this.request("host/commands")).commands ?? [];
  }

  async shortcuts() {
    return (await this.request("host/shortcuts")).shortcuts ?? {};
  }

  async promptSections() {
    return (await this.request("host/promptSections")).sections ?? [];
  }

  async extInfos() {
    return (await this.request("host/extInfos")).extensions ?? [];
  }

  // Undo

  async undoSnapshots() {
    return (await this.request("host/undoSnapshots")).snapshots ?? {};
  }

  /** @param {string} path */
  async undoRestore(path) {
    await this.request("host/undoRestore", { path });
  }

  // Messages among extensions

  /**
   * @param {string} topic
   * @param {unknown} [data]
   */
  async publish(topic, data) {
    await this.request("host/publish", data === undefined ? { topic } : { topic, data });
  }

  /**
   * @param {string} topic
   * @param {(data: any, topic: string) => unknown} handler
   */
  async subscribe(topic, handler) {
    const { subscriptionId: id } = await this.request("host/subscribe", { topic });
    this.#subscriptions.set(id, handler);
    const early = this.#early;
    this.#early = [];
    for (const params of early) this.published(params);
    return {
      id,
      unsubscribe: async () => {
        // Where the host cannot end it, what comes is dropped.
        this.#subscriptions.set(id, () => undefined);
        if (!this.#session().offers("unsubscribe")) return;
        this.#subscriptions.delete(id);
        await this.request("host/unsubscribe", { subscriptionId: id });
      },
    };
  }

  /**
   * Something came over the bus; it may be here before the answer that says which subscription it is for.
   * @param {any} params
   */
  published(params) {
    const handler = this.#subscriptions.get(params.subscriptionId);
    if (handler)
      void this.#session().guarded(`the subscriber of ${params.topic}`, () => handler(params.data, params.topic));
    else if (this.#early.length < EARLY_LIMIT) this.#early.push(params);
  }
}

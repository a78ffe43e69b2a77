import type { Session } from "./session.js";

export interface RequestOptions {
  /** Takes the request back. */
  signal?: AbortSignal;
  /** How long to wait, in milliseconds; 0 is for ever. */
  timeout?: number;
}

export interface Subscription {
  readonly id: number;
  unsubscribe(): Promise<void>;
}

export interface Usage {
  input: number;
  output: number;
}

export interface SessionInfo {
  id: string;
  title: string;
  cwd: string;
  createdAt: string;
  path: string;
  parentId?: string;
}

export interface ModelInfo {
  id: string;
  api: string;
  displayName: string;
  provider: string;
  current: boolean;
  contextWindow?: number;
  maxTokens?: number;
  reasoning?: boolean;
  costInput?: number;
  costOutput?: number;
}

export interface ToolInfo {
  name: string;
  description: string;
  parameters?: any;
  deferred?: boolean;
}

export interface Item {
  id: string;
  label: string;
  desc?: string;
}

/** What an extension can ask the host for. Rejects with HostError, or NotOffered where the host has no services. */
export declare class Host {
  constructor(session: () => Session);
  /** Asks for any service by its method, such as `host/sessionTitle`. */
  request(method: string, params?: Record<string, any> | null, options?: RequestOptions): Promise<any>;

  listTools(filter?: "all" | "background_safe"): Promise<ToolInfo[]>;
  toolDefs(): Promise<{ name: string; description: string }[]>;
  activateTool(name: string): Promise<void>;
  setToolFilter(names: string[] | null): Promise<void>;

  config(keys: string[]): Promise<Record<string, any>>;
  readExtension(name: string): Promise<string>;
  authKey(provider: string): Promise<string>;
  extensionsDir(): Promise<string>;

  chat(
    messages: string | { role?: string; content: string }[],
    options?: { system?: string; model?: string; maxTokens?: number } & RequestOptions,
  ): Promise<{ text: string; usage: Usage }>;
  agentRun(
    task: string,
    options?: {
      system?: string;
      tools?: "background_safe" | "all";
      model?: string;
      maxTurns?: number;
    } & RequestOptions,
  ): Promise<{ text: string; turns: number; usage: Usage; error?: string }>;
  runBackground(prompt: string): Promise<void>;
  cancelBackground(): Promise<void>;
  isBackgroundRunning(): Promise<boolean>;

  conversationMessages(): Promise<any[]>;
  setConversationMessages(messages: any[] | null): Promise<void>;
  llmSnapshot(): Promise<{ system: string; messages: any[]; tools: ToolInfo[] }>;
  lastAssistantText(): Promise<string>;
  waitForIdle(options?: RequestOptions): Promise<void>;
  hasCompactor(): Promise<boolean>;
  triggerCompact(): Promise<{ before: number; after: number }>;
  toggleStepMode(): Promise<boolean>;

  sessions(): Promise<SessionInfo[]>;
  loadSession(path: string): Promise<void>;
  forkSession(): Promise<{ parentID: string; messageCount: number }>;
  sessionTitle(): Promise<string>;
  setSessionTitle(title: string): Promise<void>;
  sessionStats(): Promise<Record<string, any>>;
  appendSessionEntry(kind: string, data?: unknown): Promise<void>;
  appendCustomMessage(content: string, role?: "user" | "assistant"): Promise<void>;
  setLabel(targetId: string, label?: string): Promise<void>;
  branchSession(entryId: string): Promise<void>;
  branchSessionWithSummary(entryId: string, summary?: string): Promise<void>;
  resetSessionLeaf(): Promise<void>;
  sessionEntryInfos(): Promise<any[]>;
  sessionFullTree(): Promise<any[]>;

  availableModels(): Promise<ModelInfo[]>;
  switchModel(modelId: string, options?: { persistDefault?: boolean }): Promise<void>;
  syncModels(): Promise<number>;
  writeModels(
    overrides: Record<string, { name?: string; contextWindow?: number; maxTokens?: number }>,
  ): Promise<number>;

  /** The id of the item, or null when it was dismissed. */
  pick(title: string, items: (string | Item)[], options?: RequestOptions): Promise<string | null>;
  /** The choice, or null when it was dismissed. */
  ask(prompt: string, choices: string[], options?: RequestOptions): Promise<string | null>;
  requestQuit(): Promise<void>;
  abort(): Promise<void>;

  commands(): Promise<{ name: string; description: string }[]>;
  shortcuts(): Promise<Record<string, { description: string }>>;
  promptSections(): Promise<{ title: string; tokenHint?: number }[]>;
  extInfos(): Promise<any[]>;

  undoSnapshots(): Promise<Record<string, number>>;
  undoRestore(path: string): Promise<void>;

  publish(topic: string, data?: unknown): Promise<void>;
  subscribe(topic: string, handler: (data: any, topic: string) => unknown): Promise<Subscription>;
  /** @internal */
  published(params: any): void;
}

/** A model that only this extension knows. Costs are in US dollars for a million tokens. */
export interface Model {
  id: string;
  name?: string;
  contextWindow?: number;
  maxTokens?: number;
  reasoning?: boolean;
  cost?: { input?: number; output?: number; cacheRead?: number; cacheWrite?: number };
}

/** One answer that a model is asked for. */
export declare class Request {
  constructor(params: Record<string, any>);
  readonly model: Model & { api?: string; provider?: string; baseUrl?: string; headers?: Record<string, string> };
  readonly system: string;
  /** What the user said last. */
  get text(): string;
  /** Each with a `role` and a `content`, as under "Messages" in the reference of the jsonrpc dialect. */
  readonly messages: any[];
  readonly tools: { name: string; description: string; parameters: any }[];
  readonly options: { temperature?: number; maxTokens?: number; thinking?: string; headers?: Record<string, string> };
}

/** What the model says. It is complete when the handler returns. */
export declare class Reply {
  constructor(requestId: number, signal: AbortSignal, send: (params: Record<string, any>) => Promise<void>);
  readonly requestId: number;
  readonly signal: AbortSignal;
  get cancelled(): boolean;
  /** Why it ended, when it was neither complete nor a call of tools: `length`, for example. */
  stopReason: string;
  /** More of the text. Resolves when there is room for more. */
  text(delta: string): Promise<void>;
  /** More of the thinking. */
  thinking(delta: string): Promise<void>;
  /** More of the arguments of a call, as JSON text, to be shown before the call is complete. */
  toolCallDelta(id: string, name: string, delta: string): Promise<void>;
  /** A call of one of the request's tools. */
  toolCall(name: string, args: Record<string, unknown>, id?: string): Promise<void>;
  /** What was used, in tokens. */
  usage(input: number, output: number): void;
  /** @internal */
  content: Record<string, any>[];
  /** @internal */
  message(request: Request, provider: { api: string; models: { id: string }[] }): Record<string, any>;
}

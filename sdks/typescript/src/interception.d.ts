import type { ContentBlock } from "./values.js";

/** What an interceptor is asked about. Which members mean something depends on the event. */
export declare class Intercepted {
  constructor(event: string, params: any, signal: AbortSignal);
  readonly event: string;
  /** `tool_call`, `tool_result`: the tool's name. */
  readonly tool: string;
  /** `tool_call`: the arguments, as changed so far. */
  readonly args: Record<string, any>;
  /** `tool_call`, `tool_result`: the call. */
  readonly id: string;
  /** `tool_call`: the extension that makes the call, when it is not the model. */
  readonly origin: string;
  /** `turn_start`: counts from 1 for each prompt. */
  readonly step: number;
  /** `assistant_message`, `tool_result`: its text. */
  readonly text: string;
  /** `before_agent_start`: as changed so far. */
  readonly systemPrompt: string;
  /** `tool_result`: all of it. */
  readonly content: ContentBlock[];
  readonly isError: boolean;
  /** Is aborted when the answer is no longer wanted. */
  readonly signal: AbortSignal;
  /** @internal */
  amend(changed: { content: any; isError?: boolean }): void;
}

/** @internal */
export declare function judged(event: string, said: unknown): Record<string, any>;
/** @internal */
export declare function amended(said: unknown): { content: any; isError?: boolean };
/** @internal */
export declare function contentOf(content: unknown, details: any): any[];
/** @internal */
export declare function inDetails(details: any, content: any): any;
/** @internal */
export declare function strange(value: unknown): TypeError;

/** A piece of text in a result. */
export interface TextBlock {
  type: "text";
  text: string;
}

/** A picture in a result: its bytes in base64. */
export interface ImageBlock {
  type: "image";
  mime: string;
  data: string;
}

export type ContentBlock = TextBlock | ImageBlock;

export interface ResultFields {
  /** The whole result, when it is one text. */
  text?: string;
  /** Or its parts. */
  content?: readonly (string | Image | ContentBlock)[];
  /** The model is told that it failed. */
  isError?: boolean;
  /** For programs: kept beside the text, where the host can. */
  structured?: unknown;
  /** Deferred tools that the model may call from now on. */
  activate?: readonly string[];
  /** What kind of error it is, such as `FILE_NOT_FOUND`. */
  code?: string;
  /** What the model might do about the error. */
  hint?: string;
}

/** A tool's result, when a text alone does not say it. */
export declare class Result {
  constructor(fields: string | ResultFields);
  content: ContentBlock[];
  isError: boolean;
  structured: unknown;
  activate: string[];
  code: string;
  hint: string;
  /** What the tool reported while it ran; filled in by the test host alone. */
  progress: string[];
  /** All its text, one block a line. */
  get text(): string;
}

/** A picture in a result: its bytes, or the path of its file. */
export declare class Image {
  constructor(data: Uint8Array | string, mime?: string);
  readonly data: string;
  readonly mime: string;
}

/** Thrown by a handler: the model, or the user, reads exactly this. */
export declare class ToolError extends Error {
  constructor(message: string, more?: { code?: string; hint?: string });
  readonly code: string;
  readonly hint: string;
}

/** The present host does not offer what was asked for. */
export declare class NotOffered extends Error {
  constructor(message: string);
}

/** The host answered a request with an error. */
export declare class HostError extends Error {
  constructor(code: number, message: string);
  readonly code: number;
}

/** From an interceptor: this must not happen. */
export declare class Block {
  constructor(reason?: string);
  readonly reason: string;
}

/** From an interceptor of `tool_call`: call it with these arguments instead. */
export declare class Rewrite {
  constructor(args: Record<string, unknown>);
  readonly args: Record<string, unknown>;
}

/** From an interceptor of `assistant_message`: show this instead. */
export declare class Replace {
  constructor(text: string);
  readonly text: string;
}

/** From a command: put this into the user's input. */
export declare class Insert {
  constructor(text: string);
  readonly text: string;
  private readonly does: "insert";
}

/** From a command: send this to the model. */
export declare class Prompt {
  constructor(text: string);
  readonly text: string;
  private readonly does: "prompt";
}

/** From a command: run the tool, and send the prompt to the model with what it returned. */
export declare class ToolPrompt {
  constructor(tool: string, args: Record<string, unknown>, prompt: string);
  readonly tool: string;
  readonly args: Record<string, unknown>;
  readonly prompt: string;
}

/** From an input transformer: it was dealt with, send nothing. */
export declare class Handled {
  private readonly does: "handled";
}

/** @internal */
export declare function resultOf(value: unknown): Result;
/** @internal */
export declare function failureOf(error: unknown): Result;
/** @internal */
export declare function wordsOf(error: unknown): string;

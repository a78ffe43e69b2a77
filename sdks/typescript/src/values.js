// What handlers give back, and what they throw. Plain values: how each is said on the wire is protocol.js's affair.

import { readFileSync } from "node:fs";
import { jsonOf, TooLong, Unwritable } from "./encoding.js";

/** A tool's result, when a text alone does not say it. */
export class Result {
  /** @param {string | import("./values.js").ResultFields} fields */
  constructor(fields) {
    const given = typeof fields === "string" ? { text: fields } : fields;
    this.content = given.content ? blocksOf(given.content) : given.text === undefined ? [] : [textBlock(given.text)];
    this.isError = given.isError ?? false;
    this.structured = given.structured;
    this.activate = [...(given.activate ?? [])];
    this.code = given.code ?? "";
    this.hint = given.hint ?? "";
    /** What the tool reported while it ran; filled in by the test host alone.
     * @type {string[]} */
    this.progress = [];
  }

  /** All its text, one block a line. */
  get text() {
    return this.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
  }
}

/** A picture in a result. */
export class Image {
  /**
   * @param {Uint8Array | string} data its bytes, or the path of a file
   * @param {string} [mime] found out from the bytes when it is not given
   */
  constructor(data, mime) {
    const bytes = typeof data === "string" ? readFileSync(data) : Buffer.from(data);
    this.data = bytes.toString("base64");
    this.mime = mime ?? mimeOf(bytes);
  }
}

/** Thrown by a handler: the model, or the user, reads exactly this. */
export class ToolError extends Error {
  /**
   * @param {string} message
   * @param {{ code?: string, hint?: string }} [more]
   */
  constructor(message, more = {}) {
    super(message);
    this.name = "ToolError";
    this.code = more.code ?? "";
    this.hint = more.hint ?? "";
  }
}

/** The host cannot do this. */
export class NotOffered extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = "NotOffered";
  }
}

/** The host answered a request with an error. */
export class HostError extends Error {
  /**
   * @param {number} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.name = "HostError";
    this.code = code;
  }
}

/** From an interceptor: this must not happen. */
export class Block {
  /** @param {string} [reason] */
  constructor(reason = "") {
    this.reason = reason;
  }
}

/** From an interceptor of `tool_call`: call it with these arguments instead. */
export class Rewrite {
  /** @param {Record<string, unknown>} args */
  constructor(args) {
    this.args = args;
  }
}

/** From an interceptor of `assistant_message`: show this instead. */
export class Replace {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** From a command: put this into the user's input. */
export class Insert {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** From a command: send this to the model. */
export class Prompt {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** From a command: run the tool, and send the prompt to the model with what it returned. */
export class ToolPrompt {
  /**
   * @param {string} tool
   * @param {Record<string, unknown>} args
   * @param {string} prompt
   */
  constructor(tool, args, prompt) {
    this.tool = tool;
    this.args = args;
    this.prompt = prompt;
  }
}

/** From an input transformer: it was dealt with, send nothing. */
export class Handled {}

/**
 * The result that a tool's return value stands for.
 *
 * @param {unknown} value
 * @returns {Result}
 */
export function resultOf(value) {
  if (value instanceof Result) return value;
  if (value === undefined || value === null) return new Result("ok");
  if (typeof value === "string") return new Result(value);
  if (value instanceof Image) return new Result({ content: [value] });
  if (Array.isArray(value) && value.length > 0 && value.every(isPart)) return joined(value.map(resultOf));
  if (typeof value === "object") return new Result({ text: jsonOf(value), structured: value });
  return new Result(String(value));
}

/** @param {unknown} one */
function isPart(one) {
  return typeof one === "string" || one instanceof Image || one instanceof Result;
}

/** @param {Result[]} parts */
function joined(parts) {
  return new Result({
    content: parts.flatMap(({ content }) => content),
    isError: parts.some(({ isError }) => isError),
    structured: parts.find(({ structured }) => structured !== undefined)?.structured,
    activate: parts.flatMap(({ activate }) => activate),
  });
}

/**
 * The result that something thrown stands for: a ToolError's own words, anything else in one line.
 *
 * @param {unknown} error
 * @returns {Result}
 */
export function failureOf(error) {
  const { code, hint } = error instanceof ToolError ? error : { code: "", hint: "" };
  return new Result({ text: wordsOf(error), isError: true, code, hint });
}

/** Those whose message says it all. */
const PLAIN = [ToolError, NotOffered, HostError, TooLong, Unwritable];

/**
 * One line about something thrown, for whoever asked.
 *
 * @param {unknown} error
 */
export function wordsOf(error) {
  if (error instanceof Error && PLAIN.some((kind) => error instanceof kind)) return error.message.toWellFormed();
  const words = error instanceof Error ? `${error.name || "Error"}: ${error.message}` : `Error: ${String(error)}`;
  return words.split(/\s+/).join(" ").trim().toWellFormed();
}

/**
 * @param {readonly (string | Image | import("./values.js").ContentBlock)[]} content
 * @returns {import("./values.js").ContentBlock[]}
 */
function blocksOf(content) {
  return content.map((one) => {
    if (typeof one === "string") return textBlock(one);
    if (one instanceof Image) return { type: "image", mime: one.mime, data: one.data };
    return one;
  });
}

/**
 * @param {string} text
 * @returns {import("./values.js").TextBlock}
 */
function textBlock(text) {
  return { type: "text", text: String(text) };
}

/** @param {Buffer} bytes */
function mimeOf(bytes) {
  const head = bytes.toString("latin1", 0, 12);
  if (head.startsWith("\x89PNG")) return "image/png";
  if (head.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (head.startsWith("GIF8")) return "image/gif";
  if (head.startsWith("RIFF") && head.slice(8, 12) === "WEBP") return "image/webp";
  throw new TypeError("Image: neither PNG, JPEG, GIF nor WebP; give its type as the second argument");
}

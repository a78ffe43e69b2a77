// Values into JSON lines, as strictly as the wire wants them: what JSON cannot hold is an error that names the member,
// and never null, `{}` or half a character on the wire.

import { LINE_LIMIT } from "./transport.js";

const DEPTH_LIMIT = 200;

/** A line that is too long to be sent. */
export class TooLong extends RangeError {
  /** @param {number} bytes */
  constructor(bytes) {
    super(
      `${bytes} bytes are too many for one line, which is shorter than ${LINE_LIMIT}; write a file and name it instead`,
    );
    this.name = "TooLong";
    this.bytes = bytes;
  }
}

/** A value that JSON has no form for. */
export class Unwritable extends TypeError {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = "Unwritable";
  }
}

/**
 * @param {Record<string, any>} message
 * @returns {string}
 */
export function encoded(message) {
  const line = jsonOf(message);
  const bytes = line.length * 3 < LINE_LIMIT ? 0 : Buffer.byteLength(line) + 1;
  if (bytes >= LINE_LIMIT) throw new TooLong(bytes);
  return line;
}

/**
 * @param {unknown} value
 * @returns {string}
 */
export function jsonOf(value) {
  checkValue(value, "", 0);
  return JSON.stringify(value);
}

/**
 * @param {any} value
 * @param {string} path
 * @param {number} depth
 */
function checkValue(value, path, depth) {
  switch (typeof value) {
    case "string":
      if (!value.isWellFormed()) throw unfit(path, "half a character (a lone surrogate)");
      return;
    case "number":
      if (!Number.isFinite(value)) throw unfit(path, String(value));
      return;
    case "boolean":
      return;
    case "undefined":
      if (path.endsWith("]")) throw unfit(path, "undefined");
      return;
    case "object":
      if (value !== null) checkMembers(value, path, depth);
      return;
    default:
      throw unfit(path, `a ${typeof value}`);
  }
}

/**
 * @param {any} value
 * @param {string} path
 * @param {number} depth
 */
function checkMembers(value, path, depth) {
  if (depth > DEPTH_LIMIT) throw unfit("", "what contains itself, or is nested too deeply");
  if (typeof value.toJSON === "function") return checkValue(value.toJSON(), path, depth + 1);
  if (value instanceof Map || value instanceof Set) throw unfit(path, `a ${value.constructor.name}`);
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += 1) checkValue(value[at], `${path}[${at}]`, depth + 1);
    return;
  }
  for (const [name, one] of Object.entries(value)) {
    if (!name.isWellFormed()) throw unfit(path, "a name with half a character (a lone surrogate)");
    checkValue(one, path ? `${path}.${name}` : name, depth + 1);
  }
}

/**
 * @param {string} path
 * @param {string} what
 */
function unfit(path, what) {
  return new Unwritable(`${path || "the value"}: JSON cannot hold ${what}`);
}

// The pipes: which of them the host listens on, whole lines in both directions, and keeping everybody else's output
// off the wire. What a line means is protocol.js's affair.

import { Console } from "node:console";
import { createReadStream, createWriteStream, statSync } from "node:fs";
import { Socket } from "node:net";
import { Readable } from "node:stream";

/** A line is shorter than this many bytes, its end included. */
export const LINE_LIMIT = 4 * 1024 * 1024;
const NEWLINE = 10;
const ROOM = 1024 * 1024;

/** Cuts bytes into lines at `\n` and nowhere else, and drops a line that is too long. */
export class Lines {
  /**
   * @param {(line: string) => void} take
   * @param {(bytes: number) => void} tooLong
   */
  constructor(take, tooLong) {
    this.take = take;
    this.tooLong = tooLong;
    /** @type {Buffer[]} */
    this.pieces = [];
    this.held = 0;
  }

  /** @param {Buffer} chunk */
  feed(chunk) {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      this.hold(chunk.subarray(from, at));
      this.end();
      from = at + 1;
    }
    this.hold(chunk.subarray(from));
  }

  /** @param {Buffer} piece */
  hold(piece) {
    if (piece.length === 0) return;
    this.held += piece.length;
    if (this.held < LINE_LIMIT) this.pieces.push(piece);
    else this.pieces = [];
  }

  /** The line is complete, or there is no more. */
  end() {
    const { pieces, held } = this;
    this.pieces = [];
    this.held = 0;
    if (held >= LINE_LIMIT) this.tooLong(held);
    else if (held > 0) this.take(pieces.length === 1 ? pieces[0].toString() : Buffer.concat(pieces).toString());
  }
}

/** A pair of descriptors that lines are read from and written to. */
export class Pipes {
  /**
   * @param {number} input
   * @param {number} output
   */
  constructor(input, output) {
    this.input = input;
    this.output = output;
    /** @type {import("node:stream").Writable | undefined} */
    this.writer = undefined;
  }

  /** @param {import("./transport.js").Listener} listener */
  listen(listener) {
    this.writer = writerOf(this.output);
    this.writer.on("error", () => listener.ended());
    const lines = new Lines(listener.line, listener.tooLong);
    const reader = readerOf(this.input);
    reader.on("data", (chunk) => lines.feed(chunk));
    const finish = () => {
      lines.end();
      listener.ended();
    };
    reader.on("end", finish);
    reader.on("error", finish);
  }

  /**
   * Lines go out whole and in order; those that the pipe has no room for wait in memory.
   * @param {string} line
   */
  write(line) {
    this.writer?.write(`${line}\n`);
  }

  /** @param {string} text a line of the log */
  log(text) {
    process.stderr.write(`${text}\n`);
  }

  /** Resolves once little waits to be written. */
  async room() {
    const { writer } = this;
    if (writer === undefined || writer.writableLength < ROOM || writer.destroyed) return;
    await new Promise((resolve) => {
      writer.once("drain", resolve);
      writer.once("close", resolve);
    });
  }

  /** Resolves once everything is written, or cannot be. */
  async flush() {
    const { writer } = this;
    if (writer === undefined || writer.destroyed || writer.writableLength === 0) return;
    await new Promise((resolve) => writer.write("", () => resolve(undefined)));
  }
}

/**
 * Node reads a file descriptor on a thread that it waits for when it exits; sockets have no such thread. Bun does not
 * open descriptors as sockets, and does not wait.
 *
 * @param {number} fd
 */
function asFile(fd) {
  return "Bun" in globalThis || status(fd)?.isFile() === true;
}

/**
 * @param {number} fd
 * @returns {Readable}
 */
function readerOf(fd) {
  return asFile(fd) ? createReadStream("", { fd }) : new Socket({ fd, readable: true, writable: false });
}

/**
 * @param {number} fd
 * @returns {import("node:stream").Writable}
 */
function writerOf(fd) {
  return asFile(fd) ? createWriteStream("", { fd }) : new Socket({ fd, readable: false, writable: true });
}

/**
 * Which dialect the host speaks, and where.
 *
 * @param {string | undefined} asked
 * @returns {{ dialect: "frames" | "jsonrpc", input: number, output: number }}
 */
export function found(asked) {
  const wanted = asked ?? process.env.HILT_SDK_DIALECT;
  if (wanted !== undefined && wanted !== "" && wanted !== "frames" && wanted !== "jsonrpc") {
    throw new TypeError(`dialect: expected "frames" or "jsonrpc", got ${JSON.stringify(wanted)}`);
  }
  const stdio = { input: 0, output: 1 };
  if (wanted === "frames") return { dialect: "frames", ...stdio };
  if (process.env.PIGLET_FD === "1" && status(3) && status(4)) return { dialect: "jsonrpc", input: 3, output: 4 };
  return { dialect: wanted === "jsonrpc" ? "jsonrpc" : "frames", ...stdio };
}

/**
 * What a descriptor is, or undefined when it is not open. Asked for by name: Deno closes a descriptor that it was asked
 * about by number.
 *
 * @param {number} fd
 */
function status(fd) {
  return statSync(`/dev/fd/${fd}`, { throwIfNoEntry: false });
}

/** Sends what is printed to stderr, which is the log, and gives readers of stdin its end. */
export function takeStdio() {
  const log = new Console({ stdout: process.stderr, stderr: process.stderr });
  for (const [name, method] of Object.entries(log)) {
    if (typeof method === "function" && name !== "Console") Reflect.set(console, name, method);
  }
  Object.defineProperty(process, "stdout", { configurable: true, get: () => process.stderr });
  /** @type {Readable | undefined} */
  let nothing;
  Object.defineProperty(process, "stdin", { configurable: true, get: () => (nothing ??= Readable.from([])) });
}

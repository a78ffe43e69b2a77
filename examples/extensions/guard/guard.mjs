// A guard that fails closed: nothing is written outside the project, and no shell command does what cannot be undone.
import { isAbsolute, relative, resolve } from "node:path";
import { Block, Extension } from "./hilt-sdk/src/index.js";

export const ext = new Extension("guard", "1.0.0");

const FORBIDDEN = [
  { words: /\brm\s+-\w*[rf]/, instead: "move it to a folder of its own, or ask the user" },
  { words: /\bgit\s+push\b.*(--force|-f)\b/, instead: "push to a branch of its own" },
  { words: /\b(mkfs|dd)\b/, instead: "ask the user" },
  { words: /\bcurl\b.*\|\s*(sh|bash)\b/, instead: "download it, read it, then run it" },
];

ext.intercept("tool_call", (call) => {
  if (call.tool === "bash") return shell(String(call.args.command ?? ""));
  if (call.tool === "write" || call.tool === "edit") return file(String(call.args.path ?? ""));
});

/** @param {string} command */
function shell(command) {
  const rule = FORBIDDEN.find(({ words }) => words.test(command));
  if (rule) return new Block(`this cannot be undone; ${rule.instead}`);
}

/** @param {string} path */
function file(path) {
  const within = relative(ext.cwd, resolve(ext.cwd, path));
  if (within.startsWith("..") || isAbsolute(within)) return new Block(`${path} is outside of the project`);
}

await ext.run({ main: import.meta });

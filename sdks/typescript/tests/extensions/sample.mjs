// An extension for tests with a real process: it prints where it should not, and does what it is told.

import { readFileSync } from "node:fs";
import { Extension, s, ToolError } from "../../src/index.js";

const ext = new Extension("sample", "1.0.0");

ext.tool({
  name: "echo",
  description: "Say it again.",
  parameters: s.object({ text: s.string(), times: s.integer().default(1) }),
  run({ text, times }) {
    console.log("printed by a handler");
    console.table([{ printed: "as a table" }]);
    process.stdout.write("written by a handler\n");
    return text.repeat(times);
  },
});
ext.tool({ name: "stdin", run: async () => (await process.stdin.toArray()).length });
ext.tool({
  name: "stray",
  async run() {
    setTimeout(() => {
      throw new Error("nobody waits for this");
    });
    void Promise.reject(new Error("nor for this"));
    await new Promise((resolve) => setTimeout(resolve, 20));
    return "still here";
  },
});
ext.tool({
  name: "slow",
  async run(_, call) {
    call.progress("begun");
    call.onCancel(() => ext.notify("told"));
    return (await call.wait(60)) ? "stopped" : "slept";
  },
});
ext.tool({ name: "stuck", run: () => new Promise(() => undefined) });
ext.tool({
  name: "fail",
  run() {
    throw new ToolError("no such city", { code: "NO_CITY", hint: "try Rome" });
  },
});
ext.tool({ name: "descriptors", run: () => readFileSync("/proc/self/stat", "utf8").length > 0 });
ext.command("hi", "say hello", (name) => `hello ${name}`);
ext.onStop(() => ext.log("goodbye"));
await ext.run();

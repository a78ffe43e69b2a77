// Ask hilt one thing from Node: node client.mjs "PROMPT" [flags for hilt rpc…]
import { spawn } from "node:child_process";
import { closeSync, openSync, readSync, writeSync } from "node:fs";

const [prompt, ...flags] = process.argv.slice(2);
const hilt = spawn(process.env.HILT ?? "hilt", ["rpc", ...flags], { stdio: ["pipe", "pipe", "inherit"] });
const send = (command) => hilt.stdin.write(JSON.stringify(command) + "\n");

// Ask the person at the terminal; without one the answer is no.
function allowed({ title, preview }) {
  try {
    const terminal = openSync("/dev/tty", "r+");
    writeSync(terminal, `\n${title}\n${preview.text}\n[y/N] `);
    const answer = Buffer.alloc(80);
    const yes = answer.toString("utf8", 0, readSync(terminal, answer)).trim().toLowerCase() === "y";
    closeSync(terminal);
    return yes;
  } catch {
    return false;
  }
}

function take(event) {
  if (event.type === "text_delta") process.stdout.write(event.delta);
  else if (event.type === "ui_request" && event.kind === "confirm")
    send({ type: "ui_response", id: event.id, approved: allowed(event), reason: "the user said no" });
  else if (event.type === "error" || (event.type === "response" && !event.success)) {
    console.error(`error: ${event.message ?? event.error}`);
    hilt.stdin.end();
  } else if (event.type === "done") {
    process.exitCode = event.stop === "end" ? 0 : 1;
    if (event.stop !== "error") process.stdout.write("\n");
    hilt.stdin.end();
  }
}

process.exitCode = 1; // until `done` says otherwise
if (process.env.HILT_RPC_TOKEN) send({ type: "hello", token: process.env.HILT_RPC_TOKEN });
send({ type: "prompt", id: "1", message: prompt });
let rest = "";
hilt.stdout.setEncoding("utf8").on("data", (text) => {
  const lines = (rest + text).split("\n"); // not readline: it also splits at U+2028, which may stand inside a line
  rest = lines.pop();
  lines.forEach((line) => take(JSON.parse(line)));
});

// Ask hilt one thing from Node: node client.mjs "PROMPT" [flags for hilt rpc…]
import { spawn } from "node:child_process";

const [prompt, ...flags] = process.argv.slice(2);
const hilt = spawn(process.env.HILT ?? "hilt", ["rpc", ...flags], { stdio: ["pipe", "pipe", "inherit"] });
const send = (command) => hilt.stdin.write(JSON.stringify(command) + "\n");

function take(event) {
  if (event.type === "text_delta") process.stdout.write(event.delta);
  else if (event.type === "ui_request")
    send({ type: "ui_response", id: event.id, approved: false, reason: "this client allows nothing" });
  else if (event.type === "error" || event.success === false) {
    console.error(`error: ${event.message ?? event.error}`);
    hilt.stdin.end(); // the end of its input is the end of hilt
  } else if (event.type === "done") {
    process.exitCode = event.stop === "end" ? 0 : 1;
    if (event.stop !== "error") process.stdout.write("\n");
    hilt.stdin.end();
  }
}

process.exitCode = 1; // until `done` says otherwise
if (process.env.HILT_RPC_TOKEN) send({ type: "hello", token: process.env.HILT_RPC_TOKEN });
send({ type: "prompt", message: prompt });
let rest = "";
hilt.stdout.setEncoding("utf8").on("data", (text) => {
  const lines = (rest + text).split("\n"); // not readline: it also splits at U+2028, which may stand inside a line
  rest = lines.pop();
  lines.forEach((line) => take(JSON.parse(line)));
});

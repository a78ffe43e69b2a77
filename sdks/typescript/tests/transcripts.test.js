// Every conversation of spec/transcripts, with the SDK as the extension.

import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Player } from "./player.js";

const SPEC = join(import.meta.dirname, "../../../spec/transcripts");
const NEVER = { raw: "no SDK would do this", two_extensions: "there is one extension", failing: "it does not start" };
/** What the SDK does not say, by design. */
const OTHERWISE = {
  "frames/panel-that-is-not-open": "only panels that are open are drawn",
  "jsonrpc/handshake-before-initialize": "all is said after initialize: what is registered depends on the host",
};

const files = [
  ...readdirSync(SPEC)
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => ({ dialect: "frames", path: join(SPEC, name) })),
  ...readdirSync(join(SPEC, "jsonrpc")).map((name) => ({ dialect: "jsonrpc", path: join(SPEC, "jsonrpc", name) })),
];
const place = mkdtempSync(join(tmpdir(), "hilt-transcripts-"));
const fifos = files.map((_, at) => [join(place, `${at}.in`), join(place, `${at}.out`)]);
execFileSync("mkfifo", fifos.flat());
after(() => rmSync(place, { recursive: true }));

function record(row) {
  if (process.env.HILT_SDK_TABLE)
    appendFileSync(process.env.HILT_SDK_TABLE, `${JSON.stringify({ sdk: "typescript", ...row })}\n`);
}

for (const [at, { dialect, path }] of files.entries()) {
  const transcript = readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const name = transcript[0].transcript;
  const reason = OTHERWISE[`${dialect}/${name}`] ?? transcript[0].needs.map((need) => NEVER[need]).find(Boolean);
  test(`${dialect}: ${name}`, { skip: reason ?? false }, async () => {
    await new Player(transcript, fifos[at]).play();
    record({ dialect, transcript: name, outcome: "passed" });
  });
  if (reason) record({ dialect, transcript: name, outcome: "skipped", reason });
}

// What an editor shows of a manifest with mistakes: the YAML language server over stdio, as every editor starts it.
import assert from "node:assert";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [server, schema] = process.argv.slice(2);
const language = spawn(process.execPath, [server, "--stdio"], { stdio: ["pipe", "pipe", "inherit"] });
const waiting = new Map();
const diagnostics = new Map();
let buffer = Buffer.alloc(0);
let number = 0;

function send(message) {
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
  language.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
  language.stdin.write(body);
}

function ask(method, params) {
  const id = ++number;
  return new Promise((resolve) => { waiting.set(id, resolve); send({ id, method, params }); });
}

language.stdout.on("data", (data) => {
  buffer = Buffer.concat([buffer, data]);
  for (;;) {
    const end = buffer.indexOf("\r\n\r\n");
    const length = end < 0 ? NaN : Number(/Content-Length: (\d+)/i.exec(buffer.subarray(0, end).toString())[1]);
    if (!(buffer.length >= end + 4 + length)) return;
    const message = JSON.parse(buffer.subarray(end + 4, end + 4 + length));
    buffer = buffer.subarray(end + 4 + length);
    if (message.method === "textDocument/publishDiagnostics") diagnostics.get(message.params.uri)?.(message.params.diagnostics);
    else if (message.method && message.id !== undefined) send({ id: message.id, result: message.method === "workspace/configuration" ? [{}] : null });
    else if (message.id !== undefined) waiting.get(message.id)?.(message.result);
  }
});

let files = 0;
function open(text) {
  const uri = pathToFileURL(join("/", `m${++files}.yaml`)).href;
  const whole = `# yaml-language-server: $schema=${pathToFileURL(schema).href}\n${text}`;
  const found = new Promise((resolve) => diagnostics.set(uri, resolve));
  send({ method: "textDocument/didOpen", params: { textDocument: { uri, languageId: "yaml", version: 1, text: whole } } });
  return { uri, found };
}

await ask("initialize", { processId: process.pid, rootUri: null, capabilities: {}, initializationOptions: {} });
send({ method: "initialized", params: {} });

// Rules of a model, in words that say what to do.
for (const [job, words] of [
  ["model: alpha-2, prompt: x, size: 1280x720", "aspect_ratio"],
  ["model: alpha-2, prompt: x, face: anna", "beta models"],
  ["model: beta-2.0-lite, prompt: x, aspect_ratio: '16:9'", "`size: 1280x720`"],
  ["model: beta-2.0-lite, prompt: x, image: 'https://x/y.png'", "extra"],
  ["model: alpha-2, prompt: x, duration: 7", "12"],
  ["model: beta-2.0-lite, prompt: x, duration: 12", "5 to 10"],
  ["model: alpha-2, prompt: x, aspect_ratio: '1:1'", "9:16"],
  [`model: beta-2.0-lite, prompt: ${"x".repeat(1501)}`, "1500"],
  ["model: beta-2.0-lite, prompt: x, durration: 5", "durration"],
]) {
  const told = (await open(`version: 1\njobs:\n  - { id: a, ${job} }\n`).found).map(({ message }) => message);
  assert(told.some((message) => message.includes(words)), `${job.slice(0, 70)}: ${JSON.stringify(told)}`);
  assert(!told.some((message) => message.includes('Expected "null"')), `${job}: ${JSON.stringify(told)}`);
}

// What excludes another, and amounts.
for (const [text, words] of [
  ["version: 1\nbudget: { run: $40 }\njobs: [{ id: a, model: alpha-2, prompt: x }]\n", "an amount in dollars"],
  ["version: 1\njobs: [{ id: a, model: alpha-2, prompt: x, prompt_file: x.txt }]\n", "keep one of `prompt` and `prompt_file`"],
  ["version: 1\njobs: [{ id: a, prompt: x, image: 'https://x/y.png', image_file: y.png }]\n", "keep one of `image` and `image_file`"],
]) {
  const told = (await open(text).found).map(({ message }) => message);
  assert(told.some((message) => message.includes(words)), `${words}: ${JSON.stringify(told)}`);
}

// What can be written where the cursor is.
for (const [line, wanted] of [
  ["    model: ", ["alpha-2", "beta-2.0-lite", "beta-2.0-lite-fast"]],
  ["    model: alpha-2\n    aspect_ratio: ", ['16:9', '9:16']],
  ["    ", ["prompt", "duration", "for_each", "takes"]],
]) {
  const text = `version: 1\njobs:\n  - id: a\n${line}`;
  const { uri, found } = open(text);
  await found;
  const position = { line: text.split("\n").length, character: line.split("\n").at(-1).length };
  const answer = await ask("textDocument/completion", { textDocument: { uri }, position });
  const labels = (answer.items ?? answer).map(({ label }) => label);
  for (const label of wanted) assert(labels.includes(label), `${line.trim()}: ${label} is not among ${labels}`);
}

// The examples are right.
for (const example of process.argv.slice(4)) {
  assert.deepEqual(await open(readFileSync(example, "utf8").replace(/^# yaml-language-server.*\n/, "")).found, [], example);
}
console.log("yaml-language-server");
language.kill();
process.exit(0);

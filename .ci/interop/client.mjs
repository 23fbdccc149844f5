// The official OpenAI client for Node as a client of the simulator: create, poll, download, and typed errors.
import assert from "node:assert";
import OpenAI from "openai";

const baseUrl = process.argv[2];
const asJson = { headers: { "Content-Type": "application/json" } };
const client = (apiKey = "k") => new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey, maxRetries: 0 });
const { videos } = client();

async function refused(kind, status, code, call) {
  const told = await call().then(() => null, (error) => error);
  assert(told instanceof kind, `${kind.name} was expected, and this is ${told}`);
  assert.deepEqual([told.status, told.code], [status, code]);
  return told;
}

// What it sends by default is a form, and the interface takes JSON only.
const told = await refused(OpenAI.APIError, 415, "not_json", () => videos.create({ model: "alpha-2", prompt: "a crane" }));
assert.match(told.message, /application\/json/);

const create = (body) => client().post("/videos", { body });
let video = await create({ model: "alpha-2", prompt: "a crane" });
assert.deepEqual([video.status, video.progress, video.model, video.object], ["queued", 0, "alpha-2", "video"]);
for (let look = 0; look < 600 && ["queued", "in_progress"].includes(video.status); look++) {
  await new Promise((resolve) => setTimeout(resolve, 100));
  video = await videos.retrieve(video.id);
}
assert.deepEqual([video.status, video.progress], ["completed", 100]);
const content = await videos.downloadContent(video.id);
assert.equal(Buffer.from(await content.arrayBuffer()).toString("latin1", 4, 8), "ftyp");

await refused(OpenAI.BadRequestError, 400, "unknown_model", () => create({ model: "sora-2", prompt: "x" }));
await refused(OpenAI.BadRequestError, 400, "prompt-too-long", () => create({ model: "beta-2.0-lite", prompt: "🦢".repeat(1501) }));
await refused(OpenAI.NotFoundError, 404, "not_found", () => videos.retrieve("nobody"));
await refused(OpenAI.AuthenticationError, 401, "unknown_key", () => client("unknown-key").videos.retrieve("nobody"));
await refused(OpenAI.PermissionDeniedError, 403, "key_without_group", () => client("key-without-group").videos.retrieve("x"));
console.log("openai for Node");

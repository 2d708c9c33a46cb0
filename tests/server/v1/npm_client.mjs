// Asks a server with OpenAI's client for JavaScript and writes what it got as one line of JSON.
// Arguments: the folder with node_modules, the address of the API. The key comes in OPENAI_API_KEY.
import { createRequire } from "node:module";

const [folder, baseURL] = process.argv.slice(2);
const { OpenAI } = createRequire(`${folder}/package.json`)("openai");
const client = new OpenAI({ baseURL, maxRetries: 0, timeout: 20_000 });
const model = "keryx";
const weather = {
  name: "get_weather",
  description: "The weather in a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const said = (content) => ({ role: "user", content });

async function chatStream() {
  const runner = client.chat.completions.stream({ model, messages: [said("shout")] });
  return await runner.finalContent();
}

async function chatTools() {
  // The client runs the function by itself and sends its result.
  const runner = client.chat.completions.runTools({
    model,
    messages: [said("weather")],
    tools: [
      {
        type: "function",
        function: { ...weather, parse: JSON.parse, function: ({ city }) => `sunny in ${city}` },
      },
    ],
  });
  return await runner.finalContent();
}

async function responseStream() {
  const stream = await client.responses.create({ model, input: "hello", stream: true });
  const kinds = [];
  for await (const event of stream) kinds.push(event.type);
  const helper = client.responses.stream({ model, input: "hello" });
  const final = await helper.finalResponse();
  return { kinds: [...new Set(kinds)], text: final.output[0].content[0].text };
}

async function responseTools() {
  const tools = [{ type: "function", strict: false, ...weather }];
  const first = await client.responses.create({ model, input: "mixed", tools });
  const input = first.output
    .filter((item) => item.type === "function_call")
    .map(({ call_id }) => ({ type: "function_call_output", call_id, output: "rainy" }));
  const next = { model, input, tools, previous_response_id: first.id };
  return (await client.responses.create(next)).output_text;
}

async function background() {
  const created = await client.responses.create({ model, input: "slowly", background: true });
  let last = -1;
  let text = "";
  const read = async (enough) => {
    const options = { stream: true, ...(last < 0 ? {} : { starting_after: last }) };
    for await (const event of await client.responses.retrieve(created.id, options)) {
      last = event.sequence_number;
      if (event.type === "response.output_text.delta") text += event.delta;
      if (text.length >= enough) break;
    }
  };
  await read(50);
  await read(Number.POSITIVE_INFINITY);
  const waiting = await client.responses.create({ model, input: "wait", background: true });
  const cancelled = await client.responses.cancel(waiting.id);
  return { text, status: cancelled.status };
}

async function structured() {
  const schema = { type: "object", properties: { answer: { type: "integer" } } };
  const response_format = { type: "json_schema", json_schema: { name: "a", schema } };
  const messages = [said("json")];
  const answer = await client.chat.completions.parse({ model, messages, response_format });
  return answer.choices[0].message.parsed;
}

async function refused() {
  const error = await client.responses.create({ model: "gpt-5", input: "x" }).catch((e) => e);
  return [error.status, error.code, error.constructor.name];
}

async function models() {
  const names = [];
  for await (const { id } of client.models.list()) names.push(id);
  return names;
}

const parts = {
  models,
  chatStream,
  chatTools,
  responseStream,
  responseTools,
  background,
  structured,
  refused,
};
const results = {};
for (const [name, part] of Object.entries(parts)) results[name] = await part();
console.log(JSON.stringify(results));

import { expect, it } from "vitest";
import { nameOf } from "../src/setup/providers";

it.each([
  ["http://127.0.0.1:18500/v1", "at-127-0-0-1-18500"],
  ["http://127.0.0.1:11434/v1", "at-127-0-0-1-11434"],
  ["http://127.0.0.1/v1", "at-127-0-0-1"],
  ["http://[::1]:8000/v1", "at--1-8000"],
  ["https://api.example.com/v1", "example-com"],
  ["https://api.example.com:8443/v1", "example-com-8443"],
  ["https://api.openai.com/v1", "openai"],
  ["https://api.openai.com:8443/v1", "openai-com-8443"],
  ["nonsense", "custom"],
])("calls the server at %s %s", (address, name) => {
  expect(nameOf(address)).toBe(name);
  expect(name).toMatch(/^[a-z][a-z0-9_-]{0,39}$/);
});

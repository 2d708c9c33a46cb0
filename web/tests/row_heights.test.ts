import { expect, it } from "vitest";
import { Heights } from "../src/transcript/row_heights";

const keys = Array.from({ length: 1_000 }, (_, at) => `k${at}`);

it("adds up what was measured and what is guessed", () => {
  const heights = new Heights(() => 10);
  heights.setKeys(keys);
  expect(heights.total).toBe(10_000);
  expect(heights.measure("k3", 50)).toBe(true);
  expect(heights.measure("k3", 50)).toBe(false);
  expect(heights.before(3)).toBe(30);
  expect(heights.before(4)).toBe(80);
  expect(heights.total).toBe(10_040);
});

it("finds the row at each height", () => {
  const heights = new Heights((key) => 5 + (Number(key.slice(1)) % 7));
  heights.setKeys(keys);
  heights.measure("k500", 123);
  for (const index of [0, 1, 499, 500, 501, 999]) {
    expect(heights.at(heights.before(index))).toBe(index);
    expect(heights.at(heights.before(index + 1) - 0.1)).toBe(index);
  }
  expect(heights.at(heights.total + 1_000)).toBe(999);
});

it("remembers what was measured when rows are added before it", () => {
  const heights = new Heights(() => 10);
  heights.setKeys(["b"]);
  heights.measure("b", 70);
  heights.setKeys(["a", "b"]);
  expect(heights.before(heights.indexOf("b"))).toBe(10);
  expect(heights.total).toBe(80);
});

it("has nothing at any height while it is empty", () => {
  const heights = new Heights(() => 10);
  heights.setKeys([]);
  expect([heights.at(0), heights.at(50), heights.total]).toEqual([0, 0, 0]);
});

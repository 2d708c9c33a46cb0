import { describe, expect, it } from "vitest";
import type { SessionSummary } from "../src/api/types";
import { isListed } from "../src/session_list/listed";

const session: SessionSummary = {
  session_id: "s_1",
  title: "Tea",
  state: "idle",
  model: "openai:m",
  workspace: "/w",
  pinned: false,
  archived: false,
  failed: false,
  last_seq: 1,
  created_at: 0,
  changed_at: 0,
  position: 1,
  parent: null,
};
const parent = { session_id: "s_0", call_id: "p_1.0.1" };

describe("the list of sessions", () => {
  it("has archived sessions in a list of their own", () => {
    expect(isListed(session, false)).toBe(true);
    expect(isListed({ ...session, archived: true }, false)).toBe(false);
    expect(isListed({ ...session, archived: true }, true)).toBe(true);
  });

  it("has a child agent only while it waits for somebody", () => {
    expect(isListed({ ...session, parent }, false)).toBe(false);
    expect(isListed({ ...session, parent, state: "running" }, false)).toBe(false);
    expect(isListed({ ...session, parent, state: "waiting" }, false)).toBe(true);
  });
});

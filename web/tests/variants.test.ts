import { expect, it } from "vitest";
import type { LoggedEvent } from "../src/api/types";
import { addFact } from "../src/session/fact_rows";
import { emptyTable, type MessageRow, type Table } from "../src/session/rows";

const message = (turn: string, variants: readonly string[] = []): LoggedEvent =>
  ({
    type: "message.accepted",
    message_id: `m-${turn}`,
    turn_id: turn,
    text: turn,
    mode: "queue",
    at: 1,
    variants,
  }) as never;
const restored = (turn: string, variants: readonly string[]): LoggedEvent =>
  ({ type: "turn.restored", turn_id: turn, by: "me", at: 2, variants }) as never;

const variantsIn = (table: Table): readonly (readonly string[])[] =>
  table.order.map((key) => (table.rows.get(key) as MessageRow).variants);

it("are none for a message that nothing replaced", () => {
  const table = emptyTable();
  addFact(table, message("t1"), 1);
  expect(variantsIn(table)).toEqual([[]]);
});

it("are those that the message replaces, and its own turn", () => {
  const table = emptyTable();
  addFact(table, message("t3", ["t1", "t2"]), 1);
  expect(variantsIn(table)).toEqual([["t1", "t2", "t3"]]);
});

it("are told anew by what restores a turn, in whatever order pages come", () => {
  for (const events of [
    [message("t2", ["t1"]), restored("t2", ["t1", "t2", "t3"])],
    [restored("t2", ["t1", "t2", "t3"]), message("t2", ["t1"])],
  ]) {
    const table = emptyTable();
    for (const [at, event] of events.entries()) addFact(table, event, at + 1);
    expect(variantsIn(table)).toEqual([["t1", "t2", "t3"]]);
  }
});

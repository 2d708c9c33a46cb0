/** What was used, added up. Pure. A cost that is not known makes the sum unknown. */

import type { Usage, UsageRow } from "../api/types";

export interface UsageTotal extends Usage {
  readonly model: string;
  readonly sessions: number;
  readonly cost: number | null;
}

export const NOTHING: Usage = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0 };

export const isNothing = (usage: Usage): boolean => usage.input_tokens + usage.output_tokens === 0;

function add(model: string, rows: readonly UsageRow[]): UsageTotal {
  const total = (pick: (row: UsageRow) => number): number => rows.reduce((sum, row) => sum + pick(row), 0);
  return {
    model,
    sessions: new Set(rows.map((row) => row.session_id)).size,
    input_tokens: total((row) => row.input_tokens),
    output_tokens: total((row) => row.output_tokens),
    cached_tokens: total((row) => row.cached_tokens),
    reasoning_tokens: total((row) => row.reasoning_tokens),
    cost: rows.some((row) => row.cost === null) ? null : total((row) => row.cost ?? 0),
  };
}

/** By model, the most used first; and all of them together. */
export function usageTotals(rows: readonly UsageRow[]): { models: UsageTotal[]; total: UsageTotal } {
  const used = rows.filter((row) => !isNothing(row));
  const names = [...new Set(used.map((row) => row.model))];
  const models = names.map((name) =>
    add(
      name,
      used.filter((row) => row.model === name),
    ),
  );
  const size = (sum: UsageTotal): number => sum.input_tokens + sum.output_tokens;
  return { models: models.sort((a, b) => size(b) - size(a)), total: add("", used) };
}

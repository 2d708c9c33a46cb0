/** Three first messages that fit what is configured: a model without tools is not asked to use some. */

import type { texts } from "../texts";

export type Example = keyof typeof texts.newSession.example;

/** Models that only chat. */
const TINY = /^local:smollm2/;

const WITH_TOOLS: readonly (readonly [Example, string])[] = [
  ["folder", "read_file"],
  ["compare", "execute_code"],
  ["todo", "search_files"],
  ["history", "terminal"],
];
const WITHOUT_TOOLS: readonly Example[] = ["haiku", "explain", "letter"];
const COUNT = 3;

export function fittingExamples(tools: ReadonlySet<string>, model: string): readonly Example[] {
  const usable = TINY.test(model) ? [] : WITH_TOOLS.filter(([, tool]) => tools.has(tool)).map(([example]) => example);
  return [...usable, ...WITHOUT_TOOLS].slice(0, COUNT);
}

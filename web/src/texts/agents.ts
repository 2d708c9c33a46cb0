/** Child agents and plans. */

export const agents = {
  /** A line that leads to the session of a child agent, for people who hear the page. */
  link: (line: string): string => `Open the child agent: ${line}`,
  open: "Open this child agent",
  missing: "This child agent has no session: it ended before it started, or its session was deleted.",
  childOf: "Child agent of",
  parent: "the session that started it",
};

export const plan = {
  label: "Plan",
  steps: "Steps of the plan",
  count: (done: number, all: number): string => `${done} of ${all} done`,
  status: { open: "Open", doing: "In progress", done: "Done" },
};

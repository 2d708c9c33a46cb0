/** What waits for a person: approvals and questions. And the rules that approvals made. */

import { seconds } from "./amounts";

export const approvals = {
  label: "Waiting for you",
  question: (tool: string): string => `Allow ${tool}?`,
  risks: { none: "", low: "", high: "High risk" },
  network: "Needs the network",
  reads: (paths: string): string => `Reads ${paths}`,
  writes: (paths: string): string => `Writes ${paths}`,
  expires: (inSeconds: number): string => `Expires in ${seconds(inSeconds)}`,
  deny: "Deny",
  allowOnce: "Allow once",
  /** For as long as the session lasts, or always. */
  allowLasting: (lasting: "session" | "always", tool: string): string =>
    lasting === "session" ? "Allow for this session" : `Always allow ${tool}`.trim(),
  reach: {
    exact: "Only this, in this folder",
    folder: "Everything in this folder",
    everywhere: "In every folder",
  },
  /** Without the folder: a session is always in its own. */
  inThisSession: (says: string, folder: string | null): string =>
    folder === null ? says : says.replace(`, in sessions that work in ${folder}`, ""),
  whole: "What it would do",
  lastingCovers: (says: string): string => `“For this session” and “Always” would cover at least: ${says}.`,
  back: "Back",
  answer: "Your answer",
  sendAnswer: "Answer",
};

export const rules = {
  title: "Approval rules",
  lead: "You made these rules with “Always allow”. If you remove a rule, Keryx asks again before such calls, in every session.",
  none: "No rules yet. “Always allow” makes a rule when Keryx asks for approval.",
  since: (time: string): string => `since ${time}`,
  remove: "Remove",
  removeRule: (says: string): string => `Remove ${says}`,
  configured: "From the configuration",
  configuredLead: "These rules are in config.toml. Change them there.",
  verdicts: { allow: "Allow", ask: "Ask before", deny: "Deny" },
};

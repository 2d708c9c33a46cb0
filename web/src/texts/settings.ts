/** The settings of a session: in its header, and before it starts. */

import { tokens } from "./amounts";

export const settings = {
  label: "Session settings",
  title: "Title",
  model: "Model",
  workspace: "Workspace",
  profile: "Profile",
  personality: "Personality",
  effort: "Effort",
  approvals: "Approvals",
  readOnly: "Read only",
  default: "Default",
  profileDefault: "Profile default",
  efforts: { minimal: "Minimal", low: "Low", medium: "Medium", high: "High" },
  approvalModes: { ask: "Ask before every change", auto: "Ask before risky calls", never: "Never ask" },
  contextUsed: (used: number, window: number | null): string =>
    window === null ? `${tokens(used)} tokens` : `${tokens(used)} of ${tokens(window)}`,
  contextLabel: "Context used",
  change: (name: string, value: string): string => `${name}: ${value}. Change`,
};

export const tools = {
  label: "Tools",
  all: "All",
  none: "None",
  some: (count: number, all: number): string => `${count} of ${all}`,
  set: (name: string, count: number): string => `${name} (${count})`,
};

/** The settings that are one field each: where each is in config.toml, and what it takes. */

import { configuration, type FieldName, type SectionName } from "../texts/configuration";
import type { Path } from "./document";

export type FieldKind = "number" | "text" | "choice" | "list" | "secret";
export type Suggestions = "models" | "tools" | "memory";

export interface Field {
  readonly section: SectionName;
  readonly path: Path;
  readonly kind: FieldKind;
  readonly label: string;
  readonly help: string;
  /** In words, where the server's default is no value. */
  readonly standard?: string;
  readonly suggestions?: Suggestions;
  /** It is read when a host starts. */
  readonly restart?: boolean;
  readonly ordered?: boolean;
}

type Options = Pick<Field, "standard" | "suggestions" | "restart" | "ordered">;

const { noLimit, none, allTools, ownModel, compactionModel, firstConfigured } = configuration;

function field(section: SectionName, name: FieldName, kind: FieldKind, options: Options = {}): Field {
  return { section, path: name.split("."), kind, ...configuration.fields[name], ...options };
}

const AUXILIARY: readonly FieldName[] = [
  "models.auxiliary.titles",
  "models.auxiliary.compaction",
  "models.auxiliary.vision",
  "models.auxiliary.extraction",
  "models.auxiliary.search",
];
const MEDIA: readonly FieldName[] = [
  "models.auxiliary.image",
  "models.auxiliary.speech",
  "models.auxiliary.transcription",
];
const BY_FRONT_END: readonly FieldName[] = [
  "profiles.default.toolsets.web",
  "profiles.default.toolsets.cli",
  "profiles.default.toolsets.gateway",
  "profiles.default.toolsets.program",
  "profiles.default.toolsets.api",
];
const LIMITS: readonly FieldName[] = [
  "limits.cost_per_turn",
  "limits.cost_per_session",
  "limits.cost_per_day",
  "limits.steps",
  "limits.tokens",
  "limits.seconds",
  "limits.tokens_per_session",
  "limits.tokens_per_day",
];

export const FIELDS: readonly Field[] = [
  field("models", "models.fallback", "list", { suggestions: "models", standard: none, ordered: true }),
  field("models", "models.compact_at", "number"),
  ...AUXILIARY.map((name) => field("models", name, "text", { suggestions: "models", standard: ownModel })),
  field("models", "models.auxiliary.memory", "text", { suggestions: "models", standard: compactionModel }),
  ...MEDIA.map((name) => field("models", name, "text", { suggestions: "models", standard: none })),
  ...BY_FRONT_END.map((name) => field("tools", name, "list", { suggestions: "tools", standard: allTools })),
  field("tools", "confinement", "choice", { restart: true }),
  field("tools", "tools.web.backend", "choice", { restart: true, standard: firstConfigured }),
  field("tools", "tools.web.searxng_url", "text", { restart: true, standard: none }),
  field("tools", "tools.web.brave_api_key", "secret", { restart: true }),
  field("tools", "tools.web.tavily_api_key", "secret", { restart: true }),
  field("tools", "tools.web.allow_private", "list", { restart: true, standard: none }),
  field("approvals", "approvals.mode", "choice"),
  field("approvals", "approvals.allow", "list", { standard: none }),
  field("approvals", "approvals.ask", "list", { standard: none }),
  field("approvals", "approvals.deny", "list", { standard: none }),
  field("approvals", "approvals.expires", "number", { standard: noLimit }),
  field("memory", "memory.providers", "list", { suggestions: "memory", standard: none, restart: true }),
  field("memory", "memory.wait", "number", { restart: true }),
  ...LIMITS.map((name) => field("limits", name, "number", { standard: noLimit })),
  field("limits", "durability", "choice", { restart: true }),
];

export const SECTIONS = Object.keys(configuration.sections) as readonly SectionName[];

/** What has all the words of a search: fields by themselves, and sections by what they are about. */
export function search(words: string): {
  readonly fields: readonly Field[];
  readonly sections: readonly SectionName[];
} {
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text: string): boolean => parts.every((part) => text.toLowerCase().includes(part));
  return {
    fields: FIELDS.filter(({ section, path, label, help }) =>
      has([configuration.sections[section].title, path.join("."), label, help].join(" ")),
    ),
    sections: SECTIONS.filter((name) => {
      const { title, lead, keywords } = configuration.sections[name];
      return has([title, lead, keywords].join(" "));
    }),
  };
}

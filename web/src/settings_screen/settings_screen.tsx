/** All settings, by section, with one search over them. Each change is saved at once. */

import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { userName } from "../login/login_state";
import { leaveScreen, settingsAddress } from "../navigation/route";
import { ListButton } from "../screens/header";
import { loadChoices } from "../session/choices";
import { texts } from "../texts";
import { type SectionName, configuration as words } from "../texts/configuration";
import { Button } from "../ui/button";
import { Refusal } from "../ui/refusal";
import {
  AppearanceSection,
  ApprovalsSection,
  MemorySection,
  ModelsSection,
  NotificationsSection,
  SharesSection,
} from "./brief_sections";
import { config, configProblem, loadConfig } from "./config_state";
import { ConflictBoxes } from "./conflict_box";
import { FIELDS, SECTIONS, search } from "./field_list";
import { McpSection } from "./mcp_section";
import { ProfilesSection } from "./profiles_section";
import { ProvidersSection } from "./providers_section";
import { SettingField } from "./setting_field";
import { SkillsSection } from "./skills_section";
import { TokensSection } from "./tokens_section";
import { ToolsetsSection } from "./toolsets_section";
import { UsersSection } from "./users_section";

/** What a section has besides its fields: before them, or after them. */
const BEFORE: Partial<Record<SectionName, ComponentType>> = {
  providers: ProvidersSection,
  models: ModelsSection,
  profiles: ProfilesSection,
  mcp: McpSection,
  memory: MemorySection,
  skills: SkillsSection,
  appearance: AppearanceSection,
  notifications: NotificationsSection,
  users: UsersSection,
  tokens: TokensSection,
  shares: SharesSection,
};
const AFTER: Partial<Record<SectionName, ComponentType>> = { tools: ToolsetsSection, approvals: ApprovalsSection };

/** What a named user may set: the configuration is the owner's. */
const PERSONAL: readonly SectionName[] = ["approvals", "memory", "appearance", "notifications", "shares"];
/** Sections that config.toml has no part in. */
const ELSEWHERE: ReadonlySet<SectionName> = new Set([
  "skills",
  "appearance",
  "notifications",
  "users",
  "tokens",
  "shares",
]);

export function SettingsScreen({ section }: { section: string }) {
  const [query, setQuery] = useState("");
  const isOwner = userName.value === null;
  const sections = isOwner ? SECTIONS : PERSONAL;
  const current = sections.find((name) => name === section) ?? sections[0]!;
  const shown = config.value;
  const body = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // A person may have changed the file meanwhile.
    if (isOwner) void loadConfig();
    void loadChoices();
  }, [isOwner]);
  useEffect(() => {
    body.current?.scrollTo(0, 0);
    // On a narrow screen the sections are one line that scrolls.
    document.querySelector(".settings-screen-columns [aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [current]);
  return (
    <div class="settings-screen">
      <header class="settings-screen-head">
        <ListButton />
        <h1>{words.title}</h1>
        {isOwner ? (
          <input
            type="search"
            dir="auto"
            aria-label={words.search}
            placeholder={words.search}
            value={query}
            onInput={(event) => setQuery(event.currentTarget.value)}
          />
        ) : (
          <span class="layout-grow" />
        )}
        <Button onClick={leaveScreen}>{words.back}</Button>
      </header>
      <div class="settings-screen-columns">
        <nav aria-label={words.navigation}>
          <ul>
            {sections.map((name) => (
              <li key={name}>
                <a
                  href={settingsAddress(name)}
                  aria-current={query === "" && name === current ? "page" : undefined}
                  onClick={() => setQuery("")}
                >
                  {words.sections[name].title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="settings-screen-body" ref={body}>
          <ConflictBoxes />
          <BrokenFile />
          {configProblem.value === null ? null : <Refusal problem={configProblem.value} />}
          {shown === null && isOwner ? (
            configProblem.value === null ? (
              <p class="text-dim">{texts.loading}</p>
            ) : null
          ) : query.trim() === "" ? (
            <Section key={current} name={current} />
          ) : (
            <Hits query={query} onChoose={() => setQuery("")} />
          )}
          {shown === null || (query === "" && ELSEWHERE.has(current)) ? null : (
            <p class="settings-screen-file">
              {words.file(shown.path)} {words.nextTurn}
            </p>
          )}
        </div>
      </div>
    </div>
  );
}

function Section({ name }: { name: SectionName }) {
  const { title, lead } = words.sections[name];
  const [Before, After] = [BEFORE[name], AFTER[name]];
  return (
    <section class="settings-screen-section" aria-label={title}>
      <h2>{title}</h2>
      <p class="text-dim">{lead}</p>
      {Before === undefined ? null : <Before />}
      {FIELDS.filter((field) => field.section === name).map((field) => (
        <SettingField key={field.path.join(".")} field={field} />
      ))}
      {After === undefined ? null : <After />}
    </section>
  );
}

function Hits({ query, onChoose }: { query: string; onChoose: () => void }) {
  const { fields, sections } = search(query);
  if (fields.length + sections.length === 0) return <p role="status">{words.noHits}</p>;
  return (
    <section class="settings-screen-section" aria-label={words.search}>
      {sections.length === 0 ? null : (
        <ul class="settings-screen-hits">
          {sections.map((name) => (
            <li key={name}>
              <a href={settingsAddress(name)} onClick={onChoose}>
                {words.sections[name].title}
              </a>
              <span class="text-dim">{words.sections[name].lead}</span>
            </li>
          ))}
        </ul>
      )}
      {fields.map((field) => (
        <SettingField key={field.path.join(".")} field={field} />
      ))}
    </section>
  );
}

/** The file as a person left it: it is shown where the error is, and not overwritten. */
function BrokenFile() {
  const problem = config.value?.problem ?? null;
  if (problem === null) return null;
  return (
    <div class="settings-screen-broken" role="alert">
      <h2>{words.broken.title}</h2>
      <p>
        {problem.line === null ? null : <b>{words.broken.line(problem.line)} </b>}
        {problem.detail}
      </p>
      <p>{words.broken.lead}</p>
      <Button onClick={() => void loadConfig()}>{words.broken.refresh}</Button>
    </div>
  );
}

/** Groups as tables whose rows have bars: they are read as charts and as tables. */

import type { ComponentChildren } from "preact";
import type { ToolGroup, UsageGroup, UsageReport } from "../api/types";
import { addressOf } from "../navigation/route";
import { money, seconds, tokens } from "../texts/amounts";
import { usageScreen as words } from "../texts/usage_screen";
import { allTokens, mostFirst, shareOf } from "./periods";

/** What the server calls sessions that were deleted. */
const DELETED = "(deleted)";
const MOST_SESSIONS = 20;

interface UsageTableProps {
  by: "day" | "model" | "session" | "purpose";
  groups: readonly UsageGroup[];
  /** In the order that they have, and without bars. */
  isPlain?: boolean;
  nameOf?: (group: UsageGroup) => ComponentChildren;
}

export function UsageTable({ by, groups, isPlain = false, nameOf }: UsageTableProps) {
  const most = Math.max(...groups.map(allTokens), 0);
  const rows = isPlain ? groups : mostFirst(groups, allTokens);
  const { input, cached, output, reasoning, cost, requests, failedTurns } = words;
  // A turn belongs to no model and to no purpose.
  const hasTurns = by === "day" || by === "session";
  const columns = [requests, input, cached, output, reasoning, cost, ...(hasTurns ? [failedTurns] : [])];
  return (
    <Frame name={words.sections[by].name} columns={columns}>
      {rows.map((group) => (
        <tr key={group.name}>
          <Name share={isPlain ? null : shareOf(allTokens(group), most)}>
            {nameOf === undefined ? nameIn(by, group.name) : nameOf(group)}
          </Name>
          <td>{group.requests}</td>
          <td>{tokens(group.input_tokens)}</td>
          <td>{words.percent(shareOf(group.cached_tokens, group.input_tokens))}</td>
          <td>{tokens(group.output_tokens)}</td>
          <td>{tokens(group.reasoning_tokens)}</td>
          <td>{group.cost === null ? words.unknown : money(group.cost)}</td>
          {hasTurns ? <td class={group.failed_turns ? "is-bad" : undefined}>{group.failed_turns}</td> : null}
        </tr>
      ))}
    </Frame>
  );
}

function nameIn(by: UsageTableProps["by"], name: string): string {
  return by === "purpose" ? (words.purposes[name] ?? name) : name;
}

export function SessionTable({ report }: { report: UsageReport }) {
  const groups = mostFirst(report.usage, allTokens);
  const hidden = groups.length - MOST_SESSIONS;
  const nameOf = ({ name }: UsageGroup): ComponentChildren =>
    name === DELETED ? words.deleted : <a href={addressOf(name)}>{report.titles[name] ?? words.untitled}</a>;
  return (
    <>
      <UsageTable by="session" groups={groups.slice(0, MOST_SESSIONS)} nameOf={nameOf} />
      {hidden > 0 ? <p class="text-dim">{words.others(hidden)}</p> : null}
    </>
  );
}

export function ToolTable({ groups }: { groups: readonly ToolGroup[] }) {
  if (groups.length === 0) return <p class="text-dim">{words.noTools}</p>;
  const most = Math.max(...groups.map((group) => group.calls));
  return (
    <Frame name={words.sections.tool.name} columns={[words.calls, words.failed, words.time, words.average]}>
      {mostFirst(groups, (group) => group.calls).map((group) => (
        <tr key={group.name}>
          <Name share={shareOf(group.calls, most)}>{group.name}</Name>
          <td>{group.calls}</td>
          <td class={group.failed > 0 ? "is-bad" : undefined}>{group.failed}</td>
          <td>{seconds(group.seconds)}</td>
          <td>{seconds(group.seconds / group.calls)}</td>
        </tr>
      ))}
    </Frame>
  );
}

function Frame({ name, columns, children }: { name: string; columns: string[]; children: ComponentChildren }) {
  return (
    <div class="usage-screen-frame" role="group" aria-label={name} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{name}</th>
            {columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

function Name({ share, children }: { share: number | null; children: ComponentChildren }) {
  return (
    <th scope="row">
      <span class="usage-screen-name" dir="auto">
        {children}
      </span>
      {share === null ? null : (
        <span class="usage-screen-bar" aria-hidden="true">
          <i style={{ width: `${share * 100}%` }} />
        </span>
      )}
    </th>
  );
}

/** What was used in a period: by day, model, tool, session and purpose; and the way to export it. */

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import * as keryx from "../api/client";
import type { UsageReport } from "../api/types";
import { leaveScreen, usageAddress } from "../navigation/route";
import { ListButton } from "../screens/header";
import { texts } from "../texts";
import { money, seconds, tokens } from "../texts/amounts";
import { PERIODS, type Period, usageScreen as words } from "../texts/usage_screen";
import { Button } from "../ui/button";
import { Refusal } from "../ui/refusal";
import { useRequest } from "../ui/use_request";
import { DayChart } from "./day_chart";
import { SessionTable, ToolTable, UsageTable } from "./group_tables";
import { barsOf, beginOf, periodOf, shareOf } from "./periods";

const GROUPINGS = ["day", "model", "tool", "session", "purpose"] as const;
type By = (typeof GROUPINGS)[number];
type Reports = Readonly<Record<By, UsageReport>>;

function queryOf(by: By, begin: number | null): URLSearchParams {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const query = new URLSearchParams({ by, zone });
  if (begin !== null) query.set("since", String(begin));
  return query;
}

export function UsageScreen({ period: name }: { period: string }) {
  const period = periodOf(name);
  const now = useMemo(() => Date.now(), [period]);
  const begin = beginOf(period, now);
  const { value, problem } = useRequest(
    async (signal) => {
      const reports = await Promise.all(GROUPINGS.map((by) => keryx.usageReport(queryOf(by, begin), signal)));
      return { begin, reports: Object.fromEntries(reports.map((report) => [report.by, report])) as Reports };
    },
    [begin],
  );
  return (
    <div class="usage-screen">
      <header class="usage-screen-head">
        <ListButton />
        <h1>{words.title}</h1>
        <PeriodPicker period={period} />
        <Button onClick={leaveScreen}>{words.back}</Button>
      </header>
      <div class="usage-screen-body" aria-busy={value?.begin !== begin && problem === null}>
        {problem === null ? null : <Refusal problem={problem} />}
        {value === null ? (
          problem === null ? (
            <p class="text-dim">{texts.loading}</p>
          ) : null
        ) : (
          <Content reports={value.reports} begin={value.begin} now={now} />
        )}
      </div>
    </div>
  );
}

function PeriodPicker({ period }: { period: Period }) {
  return (
    <nav class="usage-screen-periods" aria-label={words.period}>
      {PERIODS.map((name) => (
        <a key={name} class="chip" href={usageAddress(name)} aria-current={name === period ? "page" : undefined}>
          {words.periods[name]}
        </a>
      ))}
    </nav>
  );
}

function Content({ reports, begin, now }: { reports: Reports; begin: number | null; now: number }) {
  const { total, all_tools: calls } = reports.model;
  if (total.requests === 0 && calls.calls === 0 && !total.turns) {
    return (
      <p class="text-dim">
        {words.empty} {begin === null ? null : words.emptyHint}
      </p>
    );
  }
  const bars = barsOf(reports.day.usage, begin, now);
  return (
    <>
      <Summary report={reports.model} />
      <Section by="day" begin={begin}>
        <DayChart bars={bars} />
        <details class="usage-screen-details">
          <summary>{words.table}</summary>
          <UsageTable by="day" groups={bars.filter((bar) => bar.requests > 0 || bar.turns).toReversed()} isPlain />
        </details>
      </Section>
      <Section by="model" begin={begin}>
        <UsageTable by="model" groups={reports.model.usage} />
      </Section>
      <Section by="tool" begin={begin}>
        <ToolTable groups={reports.tool.tools} />
      </Section>
      <Section by="session" begin={begin}>
        <SessionTable report={reports.session} />
      </Section>
      <Section by="purpose" begin={begin}>
        <UsageTable by="purpose" groups={reports.purpose.usage} />
      </Section>
    </>
  );
}

function Summary({ report: { total, all_tools: calls } }: { report: UsageReport }) {
  const tiles: [string, string, string][] = [
    [
      words.cost,
      total.cost === null ? words.unknown : money(total.cost),
      total.cost === null ? words.unknownHint(total.known_cost) : "",
    ],
    [
      words.tokens,
      tokens(total.input_tokens + total.output_tokens),
      words.tokensHint(total.input_tokens, total.output_tokens),
    ],
    [words.cacheHits, words.percent(shareOf(total.cached_tokens, total.input_tokens)), words.cacheHint],
    ...(total.first_token === null
      ? []
      : [[words.firstToken, seconds(total.first_token), words.firstTokenHint] as [string, string, string]]),
    [words.toolCalls, String(calls.calls), words.toolHint(calls.seconds)],
    [
      words.failed,
      String(calls.failed),
      calls.calls === 0 ? "" : words.failedHint(words.percent(shareOf(calls.failed, calls.calls))),
    ],
    [words.failedTurns, String(total.failed_turns ?? 0), words.failedTurnsHint(total.turns ?? 0)],
  ];
  return (
    <section aria-label={words.summary}>
      <dl class="usage-screen-tiles">
        {tiles.map(([name, value, hint]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
            {hint ? <dd class="usage-screen-hint">{hint}</dd> : null}
          </div>
        ))}
      </dl>
    </section>
  );
}

function Section({ by, begin, children }: { by: By; begin: number | null; children: ComponentChildren }) {
  const { title } = words.sections[by];
  const query = queryOf(by, begin);
  return (
    <section class="usage-screen-section" aria-label={title}>
      <div class="usage-screen-title">
        <h2>{title}</h2>
        <span class="text-dim">{words.exports}</span>
        {(["csv", "json"] as const).map((format) => (
          <a
            key={format}
            href={keryx.usageExport(query, format)}
            download={`usage-by-${by}.${format}`}
            aria-label={words.exportAs(format.toUpperCase(), title)}
          >
            {format.toUpperCase()}
          </a>
        ))}
      </div>
      {children}
    </section>
  );
}

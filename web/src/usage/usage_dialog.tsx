/** What was used, by model: today, in this session, and ever. */

import { useEffect, useState } from "preact/hooks";
import * as keryx from "../api/client";
import { asProblem, type Problem } from "../api/problem";
import type { Usage, UsageRow } from "../api/types";
import { openUsage } from "../navigation/route";
import { current } from "../session/current_session";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { tokens } from "../texts/amounts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { ContextMeter } from "./usage_chip";
import { midnight, today, usageShown } from "./usage_today";
import { isNothing, type UsageTotal, usageTotals } from "./usage_totals";

export function UsageDialog() {
  return usageShown.value ? <Shown session={current.value?.store.value ?? null} /> : null;
}

interface UsageAnswer {
  readonly today: readonly UsageRow[];
  readonly ever: readonly UsageRow[];
}

function Shown({ session }: { session: SessionStore | null }) {
  const { totals, problem } = useUsage(session?.head.usage.value ?? null);
  const close = (): void => {
    usageShown.value = false;
  };
  const own = totals?.ever.filter((row) => row.session_id === session?.id) ?? [];
  return (
    <Dialog title={texts.usage.title} onClose={close} kind="usage-dialog">
      <h2>{texts.usage.title}</h2>
      {problem === null ? null : (
        <p class="text-error" role="alert">
          {problem.kind === "unreachable" ? texts.unreachable : texts.problem(problem.message, problem.hint)}
        </p>
      )}
      {totals === null && problem === null ? <p class="text-dim">{texts.loading}</p> : null}
      {totals === null ? null : <Part title={texts.usage.today} lead={texts.usage.todayLead} rows={totals.today} />}
      {session === null ? null : <OfSession session={session} rows={own} />}
      {totals === null ? null : <Part title={texts.usage.allTime} lead={texts.usage.allTimeLead} rows={totals.ever} />}
      <div class="layout-buttons">
        <Button
          onClick={() => {
            close();
            openUsage();
          }}
        >
          {texts.usage.charts}
        </Button>
        <Button onClick={close}>{texts.close}</Button>
      </div>
    </Dialog>
  );
}

/** Asked when the dialog opens, and when the session that is open has used more. */
function useUsage(used: Usage | null): { totals: UsageAnswer | null; problem: Problem | null } {
  const [totals, setTotals] = useState<UsageAnswer | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    let mounted = true;
    const ask = async (): Promise<void> => {
      try {
        const [day, ever] = await Promise.all([keryx.usage(midnight()), keryx.usage()]);
        if (!mounted) return;
        today.value = usageTotals(day.rows).total;
        setTotals({ today: day.rows, ever: ever.rows });
        setProblem(null);
      } catch (error) {
        if (mounted) setProblem(asProblem(error));
      }
    };
    void ask();
    return () => {
      mounted = false;
    };
  }, [used]);
  return { totals, problem };
}

function Part({ title, lead, rows }: { title: string; lead: string; rows: readonly UsageRow[] }) {
  const { models, total } = usageTotals(rows);
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <p class="text-dim">{models.length === 0 ? texts.usage.empty : lead}</p>
      {models.length === 0 ? null : <Table models={models} total={total} />}
    </section>
  );
}

function OfSession({ session, rows }: { session: SessionStore; rows: readonly UsageRow[] }) {
  const context = session.head.context.value;
  const usage = session.head.usage.value;
  const used = context?.last_prompt_tokens ?? null;
  const { models, total } = usageTotals(rows);
  return (
    <section aria-label={texts.usage.session}>
      <h3>{texts.usage.session}</h3>
      {used === null ? null : (
        <p class="usage-dialog-meter">
          <span>{texts.usage.context}</span>
          <ContextMeter context={context!} used={used} />
          <span>{texts.settings.contextUsed(used, context!.window)}</span>
          {context!.compact_at === null ? null : <small>{texts.compaction.auto(context!.compact_at)}</small>}
        </p>
      )}
      {isNothing(usage) ? (
        <p class="text-dim">{texts.usage.empty}</p>
      ) : (
        <Amounts usage={usage} cost={session.head.cost.value} />
      )}
      {models.length > 1 ? <Table models={models} total={total} alone /> : null}
    </section>
  );
}

function Amounts({ usage, cost }: { usage: Usage; cost: number | null }) {
  const rows: [string, string][] = [
    [texts.usage.input, tokens(usage.input_tokens)],
    [texts.usage.cached, usage.cached_tokens > 0 ? tokens(usage.cached_tokens) : ""],
    [texts.usage.output, tokens(usage.output_tokens)],
    [texts.usage.reasoning, usage.reasoning_tokens > 0 ? tokens(usage.reasoning_tokens) : ""],
    [texts.usage.cost, texts.usage.money(cost)],
  ];
  return (
    <dl class="usage-dialog-amounts">
      {rows.map(([name, value]) =>
        value ? (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ) : null,
      )}
    </dl>
  );
}

interface TableProps {
  models: readonly UsageTotal[];
  total: UsageTotal;
  /** Of one session, so that there are none to count. */
  alone?: boolean;
}

function Table({ models, total, alone = false }: TableProps) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">{texts.usage.model}</th>
          {alone ? null : <th scope="col">{texts.usage.sessions}</th>}
          <th scope="col">{texts.usage.input}</th>
          <th scope="col">{texts.usage.output}</th>
          <th scope="col">{texts.usage.cached}</th>
          <th scope="col">{texts.usage.cost}</th>
        </tr>
      </thead>
      <tbody>
        {models.map((sum) => (
          <Line key={sum.model} name={sum.model} sum={sum} alone={alone} />
        ))}
      </tbody>
      {models.length > 1 ? (
        <tfoot>
          <Line name={texts.usage.total} sum={total} alone={alone} />
        </tfoot>
      ) : null}
    </table>
  );
}

function Line({ name, sum, alone }: { name: string; sum: UsageTotal; alone: boolean }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      {alone ? null : <td>{sum.sessions}</td>}
      <td>{tokens(sum.input_tokens)}</td>
      <td>{tokens(sum.output_tokens)}</td>
      <td>{tokens(sum.cached_tokens)}</td>
      <td>{texts.usage.money(sum.cost)}</td>
    </tr>
  );
}

/** What was used, by model: today, in this session, and ever. */

import { useEffect, useState } from "preact/hooks";
import type { Usage } from "../api/events";
import * as keryx from "../api/keryx";
import { asProblem, type Problem } from "../api/problem";
import type { UsageRow } from "../api/shapes";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { current } from "../state/app";
import type { Opened } from "../state/opened";
import { texts } from "../texts";
import { tokens } from "../texts/amounts";
import { ContextMeter } from "./chip";
import { isNothing, sums, type Sum } from "./sums";
import { midnight, today, usageShown } from "./today";

export function UsageDialog() {
  return usageShown.value ? <Shown opened={current.value?.opened.value ?? null} /> : null;
}

interface Told {
  readonly today: readonly UsageRow[];
  readonly ever: readonly UsageRow[];
}

function Shown({ opened }: { opened: Opened | null }) {
  const { told, problem } = useTold(opened?.head.usage.value ?? null);
  const close = (): void => {
    usageShown.value = false;
  };
  const own = told?.ever.filter((row) => row.session_id === opened?.id) ?? [];
  return (
    <Dialog title={texts.usage.title} onClose={close} kind="usage">
      <h2>{texts.usage.title}</h2>
      {problem === null ? null : (
        <p class="failure" role="alert">
          {problem.kind === "unreachable" ? texts.unreachable : texts.problem(problem.message, problem.hint)}
        </p>
      )}
      {told === null && problem === null ? <p class="dim">{texts.loading}</p> : null}
      {told === null ? null : <Part title={texts.usage.today} lead={texts.usage.todayLead} rows={told.today} />}
      {opened === null ? null : <OfSession opened={opened} rows={own} />}
      {told === null ? null : <Part title={texts.usage.allTime} lead={texts.usage.allTimeLead} rows={told.ever} />}
      <div class="btns">
        <Button onClick={close}>{texts.close}</Button>
      </div>
    </Dialog>
  );
}

/** Asked when the dialog opens, and when the session that is open has used more. */
function useTold(used: Usage | null): { told: Told | null; problem: Problem | null } {
  const [told, setTold] = useState<Told | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    let wanted = true;
    const ask = async (): Promise<void> => {
      try {
        const [day, ever] = await Promise.all([keryx.usage(midnight()), keryx.usage()]);
        if (!wanted) return;
        today.value = sums(day.rows).total;
        setTold({ today: day.rows, ever: ever.rows });
        setProblem(null);
      } catch (error) {
        if (wanted) setProblem(asProblem(error));
      }
    };
    void ask();
    return () => {
      wanted = false;
    };
  }, [used]);
  return { told, problem };
}

function Part({ title, lead, rows }: { title: string; lead: string; rows: readonly UsageRow[] }) {
  const { models, total } = sums(rows);
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <p class="dim">{models.length === 0 ? texts.usage.empty : lead}</p>
      {models.length === 0 ? null : <Table models={models} total={total} />}
    </section>
  );
}

function OfSession({ opened, rows }: { opened: Opened; rows: readonly UsageRow[] }) {
  const context = opened.head.context.value;
  const usage = opened.head.usage.value;
  const used = context?.last_prompt_tokens ?? null;
  const { models, total } = sums(rows);
  return (
    <section aria-label={texts.usage.session}>
      <h3>{texts.usage.session}</h3>
      {used === null ? null : (
        <p class="meterline">
          <span>{texts.usage.context}</span>
          <ContextMeter context={context!} used={used} />
          <span>{texts.settings.contextUsed(used, context!.window)}</span>
          {context!.compact_at === null ? null : <small>{texts.compaction.auto(context!.compact_at)}</small>}
        </p>
      )}
      {isNothing(usage) ? <p class="dim">{texts.usage.empty}</p> : <Amounts usage={usage} cost={opened.head.cost.value} />}
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
    <dl class="amounts">
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
  models: readonly Sum[];
  total: Sum;
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

function Line({ name, sum, alone }: { name: string; sum: Sum; alone: boolean }) {
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

/** What was used: how full the context is, tokens and cost, of this session and of all. */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { ContextSize, Usage } from "../api/events";
import * as keryx from "../api/keryx";
import { asProblem, type Problem } from "../api/problem";
import type { UsageRow } from "../api/shapes";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { current } from "../state/app";
import type { Opened } from "../state/opened";
import { texts } from "../texts";
import { money, tokens } from "../texts/amounts";
import { isNothing, sums, type Sum } from "./sums";

export const usageShown = signal(false);

/** In the header: it moves with every step. */
export function UsageChip({ opened }: { opened: Opened }) {
  const context = opened.head.context.value;
  const usage = opened.head.usage.value;
  const cost = opened.head.cost.value;
  const used = context?.last_prompt_tokens ?? null;
  if (used === null && isNothing(usage)) return null;
  const size = used === null ? "" : texts.header.context(used, context?.window ?? null);
  const spent = isNothing(usage) ? "" : cost === null ? texts.usage.unknownLong : cost > 0 ? money(cost) : "";
  return (
    <button
      type="button"
      class="chip spent"
      aria-label={texts.usage.chip(size, spent)}
      title={texts.usage.title}
      onClick={() => {
        usageShown.value = true;
      }}
    >
      {used === null ? null : <ContextMeter context={context!} used={used} />}
      {size ? <span>{size}</span> : null}
      {spent ? <span class="cost">{spent}</span> : null}
    </button>
  );
}

function ContextMeter({ context, used }: { context: ContextSize; used: number }) {
  if (context.window === null) return null;
  return <meter aria-label={texts.header.contextLabel} min={0} max={context.window} value={used} />;
}

export function UsageDialog() {
  if (!usageShown.value) return null;
  const close = (): void => {
    usageShown.value = false;
  };
  const opened = current.value?.opened.value ?? null;
  return (
    <Dialog title={texts.usage.title} onClose={close} kind="usage">
      <h2>{texts.usage.title}</h2>
      {opened === null ? null : <OfSession opened={opened} />}
      <OfAll />
      <div class="btns">
        <Button onClick={close}>{texts.close}</Button>
      </div>
    </Dialog>
  );
}

function OfSession({ opened }: { opened: Opened }) {
  const context = opened.head.context.value;
  const usage = opened.head.usage.value;
  const used = context?.last_prompt_tokens ?? null;
  return (
    <section aria-label={texts.usage.session}>
      <h3>{texts.usage.session}</h3>
      {used === null ? null : (
        <p class="meterline">
          <span>{texts.usage.context}</span>
          <ContextMeter context={context!} used={used} />
          <span>{texts.header.context(used, context!.window)}</span>
          {context!.compact_at === null ? null : <small>{texts.usage.compact(context!.compact_at)}</small>}
        </p>
      )}
      {isNothing(usage) ? <p class="dim">{texts.usage.nothing}</p> : <Amounts usage={usage} cost={opened.head.cost.value} />}
    </section>
  );
}

function Amounts({ usage, cost }: { usage: Usage; cost: number | null }) {
  const rows: [string, string][] = [
    [texts.usage.read, tokens(usage.input_tokens)],
    [texts.usage.cached, usage.cached_tokens > 0 ? tokens(usage.cached_tokens) : ""],
    [texts.usage.written, tokens(usage.output_tokens)],
    [texts.usage.thought, usage.reasoning_tokens > 0 ? tokens(usage.reasoning_tokens) : ""],
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

function OfAll() {
  const [rows, setRows] = useState<readonly UsageRow[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    void keryx.usage().then(
      (told) => setRows(told.rows),
      (error: unknown) => setProblem(asProblem(error)),
    );
  }, []);
  const { models, total } = sums(rows ?? []);
  return (
    <section aria-label={texts.usage.all}>
      <h3>{texts.usage.all}</h3>
      {problem !== null ? (
        <p class="failure" role="alert">
          {problem.kind === "unreachable" ? texts.unreachable : texts.problem(problem.message, problem.hint)}
        </p>
      ) : rows === null ? (
        <p class="dim">{texts.loading}</p>
      ) : models.length === 0 ? (
        <p class="dim">{texts.usage.nothing}</p>
      ) : (
        <>
          <p class="dim">{texts.usage.allLead}</p>
          <Table models={models} total={total} />
        </>
      )}
    </section>
  );
}

function Table({ models, total }: { models: readonly Sum[]; total: Sum }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">{texts.usage.model}</th>
          <th scope="col">{texts.usage.sessions}</th>
          <th scope="col">{texts.usage.read}</th>
          <th scope="col">{texts.usage.written}</th>
          <th scope="col">{texts.usage.cost}</th>
        </tr>
      </thead>
      <tbody>
        {models.map((sum) => (
          <Line key={sum.model} name={sum.model} sum={sum} />
        ))}
      </tbody>
      <tfoot>
        <Line name={texts.usage.total} sum={total} />
      </tfoot>
    </table>
  );
}

function Line({ name, sum }: { name: string; sum: Sum }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{sum.sessions}</td>
      <td>{tokens(sum.input_tokens)}</td>
      <td>{tokens(sum.output_tokens)}</td>
      <td>{texts.usage.money(sum.cost)}</td>
    </tr>
  );
}

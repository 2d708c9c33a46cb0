/** Bars by day, drawn as SVG; the same numbers stand in a table below them. */

import { useState } from "preact/hooks";
import type { UsageGroup } from "../api/types";
import { money, tokens } from "../texts/amounts";
import { usageScreen as words } from "../texts/usage_screen";
import { allTokens } from "./periods";

type Metric = "tokens" | "cost";
interface Part {
  readonly kind: "cached" | "input" | "output" | "cost";
  readonly amount: number;
}

const HEIGHT = 100;
const STEP = 10;
const BAR = 7.5;

export function DayChart({ bars }: { bars: readonly UsageGroup[] }) {
  const [metric, setMetric] = useState<Metric>("tokens");
  const most = Math.max(...bars.map((bar) => amountOf(bar, metric)), 0);
  const shown = metric === "tokens" ? tokens : money;
  return (
    <figure class="day-chart">
      <div class="day-chart-head">
        <div role="group" aria-label={words.show} class="day-chart-metrics">
          {(["tokens", "cost"] as const).map((name) => (
            <button
              type="button"
              key={name}
              class="chip"
              aria-pressed={metric === name}
              onClick={() => {
                setMetric(name);
              }}
            >
              {words.metrics[name]}
            </button>
          ))}
        </div>
        {metric === "tokens" ? <Legend /> : null}
      </div>
      <div class="day-chart-plot">
        <span class="day-chart-most" aria-hidden="true">
          {shown(most)}
        </span>
        <svg
          viewBox={`0 0 ${bars.length * STEP} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={words.chart(words.metrics[metric], bars.length)}
        >
          {bars.map((bar, index) => (
            <Bar key={bar.name} bar={bar} x={index * STEP} metric={metric} most={most} />
          ))}
        </svg>
      </div>
      <div class="day-chart-ends" aria-hidden="true">
        <span>{bars[0]?.name}</span>
        {bars.length > 1 ? <span>{bars.at(-1)?.name}</span> : null}
      </div>
      {metric === "cost" && bars.some((bar) => bar.cost === null) ? (
        <figcaption class="text-dim">{words.costMissing}</figcaption>
      ) : null}
    </figure>
  );
}

function Legend() {
  const entries: [Part["kind"], string][] = [
    ["cached", words.cached],
    ["input", words.uncached],
    ["output", words.output],
  ];
  return (
    <ul class="day-chart-legend">
      {entries.map(([kind, name]) => (
        <li key={kind} class={`is-${kind}`}>
          {name}
        </li>
      ))}
    </ul>
  );
}

function amountOf(bar: UsageGroup, metric: Metric): number {
  return metric === "tokens" ? allTokens(bar) : bar.known_cost;
}

function partsOf(bar: UsageGroup, metric: Metric): readonly Part[] {
  if (metric === "cost") return [{ kind: "cost", amount: bar.known_cost }];
  return [
    { kind: "cached", amount: bar.cached_tokens },
    { kind: "input", amount: bar.input_tokens - bar.cached_tokens },
    { kind: "output", amount: bar.output_tokens },
  ];
}

interface BarProps {
  bar: UsageGroup;
  x: number;
  metric: Metric;
  most: number;
}

function Bar({ bar, x, metric, most }: BarProps) {
  const cost = bar.cost === null ? words.unknown : money(bar.cost);
  let top = HEIGHT;
  return (
    <g class="day-chart-bar">
      <title>{words.bar(bar.name, metric === "tokens" ? tokens(allTokens(bar)) : cost)}</title>
      <rect class="day-chart-hover" x={x} y={0} width={STEP} height={HEIGHT} />
      {partsOf(bar, metric).map(({ kind, amount }) => {
        const height = most > 0 ? (Math.max(0, amount) / most) * HEIGHT : 0;
        top -= height;
        return <rect key={kind} class={`is-${kind}`} x={x + (STEP - BAR) / 2} y={top} width={BAR} height={height} />;
      })}
    </g>
  );
}

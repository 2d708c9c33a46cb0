/** Bars in a lane of the time axis. Those that run grow with the frames, and only those. */

import { useLayoutEffect, useRef } from "preact/hooks";
import type { Axis } from "./axis";
import { eachFrame } from "./frame_loop";
import type { BarForm } from "./grouping";
import { PARTS, placeOf, tickTexts } from "./scale";
import { joinSpans, type Span } from "./spans";

/** Gaps that are smaller than this part of the axis cannot be seen. */
const SEEN = 1 / 150;

interface Props {
  axis: Axis;
  form: BarForm;
  start: number;
  end: number | null;
  /** If it stands for several: where each of them was. */
  spans?: readonly Span[] | undefined;
}

export function Bars({ axis, form, start, end, spans }: Props) {
  const origin = axis.origin.value;
  const tick = axis.tick.value;
  if (origin === null) return null;
  if (end === null) return <Growing from={start - origin} origin={origin} tick={tick} />;
  const all = spans === undefined ? [{ start, end }] : joinSpans(spans, tick * PARTS * SEEN);
  return (
    <>
      {all.map((span, index) => (
        <Bar key={index} form={form} from={span.start - origin} to={span.end - origin} tick={tick} />
      ))}
    </>
  );
}

function Bar({ form, from, to, tick }: { form: BarForm; from: number; to: number; tick: number }) {
  const left = placeOf(from, tick);
  const width = placeOf(to, tick) - left;
  return <i class={`lane-bar is-${form}`} style={{ left: `min(${left}%, 100% - 3px)`, width: `${width}%` }} />;
}

/** As wide as it may get, and clipped: growing costs no layout. */
function Growing({ from, origin, tick }: { from: number; origin: number; tick: number }) {
  const ref = useRef<HTMLElement>(null);
  const left = placeOf(from, tick);
  useLayoutEffect(
    () =>
      eachFrame((now) => {
        const grown = placeOf(now - origin, tick) - left;
        const cut = 100 - (grown / (100 - left)) * 100;
        ref.current!.style.clipPath = `inset(0 min(${cut.toFixed(2)}%, 100% - 4px) 0 0 round 3px)`;
      }),
    [left, origin, tick],
  );
  return <i ref={ref} class="lane-bar is-running" style={{ left: `${left}%`, right: "0" }} />;
}

export function Ticks({ axis }: { axis: Axis }) {
  return (
    <div class="lane-ticks" aria-hidden="true">
      {tickTexts(axis.tick.value).map((text, index) => (
        <span key={index}>{text}</span>
      ))}
    </div>
  );
}

/** A diagram: drawn once its source is whole; the source is there too, and stays if it is not drawn. */

import { useEffect, useState } from "preact/hooks";
import { texts } from "../../texts";
import { Code, Copy } from "../code";
import { whenIdle } from "../idle";
import { isDark } from "../theme";

interface Drawing {
  readonly address: string;
  readonly width: number;
}

/** Smaller than this part of its size it cannot be read: then it scrolls. */
const SMALLEST = 0.6;
const MOST_KEPT = 50;
/** What was drawn before is there at once: a row that comes back into view keeps its height. */
const drawings = new Map<string, Drawing>();

async function draw(text: string, dark: boolean): Promise<Drawing> {
  const { drawDiagram } = await import("./diagram_frame");
  const { svg, width } = await drawDiagram(text, dark);
  // As a picture: nothing in it can run, and nothing in it can reach the page.
  const drawing = { address: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`, width };
  drawings.set(`${dark} ${text}`, drawing);
  if (drawings.size > MOST_KEPT) drawings.delete(drawings.keys().next().value!);
  return drawing;
}

function useDrawing(text: string, growing: boolean): { drawing: Drawing | null; problem: string | null } {
  const dark = isDark.value;
  const cached = drawings.get(`${dark} ${text}`) ?? null;
  const [drawing, setDrawing] = useState(cached);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    if (growing) return;
    if (cached !== null) return setDrawing(cached);
    let mounted = true;
    const callOff = whenIdle(
      () =>
        void draw(text, dark).then(
          (done) => {
            if (mounted) setDrawing(done);
          },
          (error: unknown) => {
            if (mounted) setProblem(error instanceof Error ? error.message : "");
          },
        ),
    );
    return () => {
      mounted = false;
      callOff();
    };
  }, [text, growing, dark]);
  return { drawing: cached ?? drawing, problem };
}

export function Diagram({ text, growing }: { text: string; growing: boolean }) {
  const { drawing, problem } = useDrawing(text, growing);
  const [isSource, setSource] = useState(false);
  const words = texts.diagram;
  if (growing || drawing === null || isSource) {
    return (
      <div class="diagram">
        <Code text={text} language="mermaid" growing={growing}>
          {drawing === null || growing ? null : (
            <button type="button" class="button-quiet" onClick={() => setSource(false)}>
              {words.show}
            </button>
          )}
        </Code>
        {problem === null ? null : <p class="diagram-problem">{words.failed(problem)}</p>}
      </div>
    );
  }
  return (
    <figure class="diagram">
      <figcaption>
        <span>{words.label}</span>
        <span class="diagram-tools">
          <button type="button" class="button-quiet" onClick={() => setSource(true)}>
            {words.source}
          </button>
          <Copy text={text} />
        </span>
      </figcaption>
      <div class="diagram-picture" tabIndex={0}>
        <img
          src={drawing.address}
          alt={words.alt(text)}
          width={drawing.width}
          style={{ minWidth: `${drawing.width * SMALLEST}px` }}
        />
      </div>
    </figure>
  );
}

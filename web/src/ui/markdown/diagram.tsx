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

export function Diagram({ text, growing }: { text: string; growing: boolean }) {
  const dark = isDark.value;
  const [drawing, setDrawing] = useState<Drawing | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isSource, setSource] = useState(false);
  useEffect(() => {
    if (growing) return;
    let address: string | null = null;
    let mounted = true;
    const draw = async (): Promise<void> => {
      const { drawDiagram } = await import("./diagram_frame");
      const { svg, width } = await drawDiagram(text, dark);
      if (!mounted) return;
      // As a picture: nothing in it can run, and nothing in it can reach the page.
      address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
      setDrawing({ address, width });
      setProblem(null);
    };
    const callOff = whenIdle(
      () => void draw().catch((error: unknown) => mounted && setProblem(error instanceof Error ? error.message : "")),
    );
    return () => {
      mounted = false;
      callOff();
      if (address !== null) URL.revokeObjectURL(address);
    };
  }, [text, growing, dark]);
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
        <span class="layout-buttons">
          <button type="button" class="button-quiet" onClick={() => setSource(true)}>
            {words.source}
          </button>
          <Copy text={text} />
        </span>
      </figcaption>
      <div class="diagram-picture" tabIndex={0}>
        <img src={drawing.address} alt={words.alt(text)} width={drawing.width} />
      </div>
    </figure>
  );
}

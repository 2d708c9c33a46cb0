/**
 * Diagrams are drawn in a frame of their own, because their library writes styles into what it
 * draws, which the policy of the page forbids. The frame gets words and answers with words.
 */

export interface DrawnDiagram {
  readonly svg: string;
  readonly width: number;
}

interface Waiting {
  readonly resolve: (drawing: DrawnDiagram) => void;
  readonly reject: (error: Error) => void;
  readonly timer: ReturnType<typeof setTimeout>;
}

/** A diagram that takes longer is not drawn. */
const LONGEST_MS = 20_000;

const waiting = new Map<string, Waiting>();
let frame: Promise<Window> | null = null;
let lastId = 0;

export async function drawDiagram(source: string, dark: boolean): Promise<DrawnDiagram> {
  frame ??= openFrame();
  const target = await frame;
  const id = String(++lastId);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => settle(id, (entry) => entry.reject(new Error("timeout"))), LONGEST_MS);
    waiting.set(id, { resolve, reject, timer });
    target.postMessage({ id, source, dark }, location.origin);
  });
}

function settle(id: string, act: (entry: Waiting) => void): void {
  const entry = waiting.get(id);
  if (entry === undefined) return;
  waiting.delete(id);
  clearTimeout(entry.timer);
  act(entry);
}

function openFrame(): Promise<Window> {
  const element = document.createElement("iframe");
  element.className = "diagram-frame";
  element.src = "diagram.html";
  element.tabIndex = -1;
  element.setAttribute("aria-hidden", "true");
  return new Promise((resolve, reject) => {
    window.addEventListener("message", ({ source, origin, data }: MessageEvent<unknown>) => {
      if (source !== element.contentWindow || origin !== location.origin) return;
      const answer = data as { id?: string; ready?: boolean; svg?: string; width?: number; problem?: string };
      if (answer.ready) resolve(element.contentWindow!);
      else if (answer.problem !== undefined) settle(answer.id!, ({ reject: no }) => no(new Error(answer.problem)));
      else settle(answer.id!, ({ resolve: yes }) => yes({ svg: answer.svg!, width: answer.width! }));
    });
    setTimeout(() => {
      // Nothing when it is there already; else the next diagram tries again.
      reject(new Error("timeout"));
    }, LONGEST_MS);
    document.body.append(element);
  });
}

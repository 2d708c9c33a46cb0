/** Bytes of an event stream to frames, piece by piece. It knows the format and nothing else. */

export interface Frame {
  event: string;
  data: string;
  id: string | null;
}

export class Frames {
  private rest = "";
  private event = "";
  private data: string[] = [];
  private id: string | null = null;

  /** All frames that these characters complete; what is unfinished waits for the next piece. */
  take(piece: string): Frame[] {
    const text = this.rest + piece;
    const frames: Frame[] = [];
    let start = 0;
    for (;;) {
      const end = lineEnd(text, start);
      if (end === null) break;
      this.line(text.slice(start, end.at), frames);
      start = end.next;
    }
    this.rest = text.slice(start);
    return frames;
  }

  private line(line: string, frames: Frame[]): void {
    if (line === "") {
      if (this.data.length > 0) {
        frames.push({ event: this.event || "message", data: this.data.join("\n"), id: this.id });
      }
      this.event = "";
      this.data = [];
      this.id = null;
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "event") this.event = value;
    else if (name === "data") this.data.push(value);
    else if (name === "id") this.id = value;
  }
}

function lineEnd(text: string, from: number): { at: number; next: number } | null {
  for (let at = from; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === 10) return { at, next: at + 1 };
    if (char === 13) {
      // A carriage return at the very end may be half of a line end that comes in two pieces.
      if (at + 1 === text.length) return null;
      return { at, next: text.charCodeAt(at + 1) === 10 ? at + 2 : at + 1 };
    }
  }
  return null;
}

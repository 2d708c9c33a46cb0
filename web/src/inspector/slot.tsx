/** Where the inspector goes: it is fetched when it is first shown, after what it stands beside. */

import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { whenIdle } from "../parts/idle";
import type { Opened, SessionKeeper } from "../state/opened";
import { texts } from "../texts";
import { chosen, show, shown, wide } from "./choice";

const loaded = signal<ComponentType<{ opened: Opened }> | null>(null);

export function InspectorSlot({ keeper }: { keeper: SessionKeeper | null }) {
  const opened = keeper?.opened.value ?? null;
  const visible = shown.value && opened !== null;
  useEffect(() => {
    chosen.value = null;
  }, [keeper]);
  useEffect(() => {
    if (!visible || loaded.value !== null) return;
    return whenIdle(
      () => void import("./inspector").then(({ Inspector }) => (loaded.value = Inspector), () => undefined),
    );
  }, [visible]);
  if (!visible) return null;
  const Inspector = loaded.value;
  return (
    <>
      {wide.value ? null : <div class="veil over" onClick={() => show(false)} />}
      {Inspector === null ? <div class="inspector" /> : <Inspector opened={opened} />}
    </>
  );
}

export function InspectorButton() {
  return (
    <button
      type="button"
      class="chip toggle"
      aria-expanded={shown.value}
      aria-controls="inspector"
      aria-keyshortcuts="i"
      aria-label={texts.inspector.label}
      title={texts.inspector.label}
      onClick={() => show(!shown.value)}
    >
      <span>{texts.inspector.label}</span>
    </button>
  );
}

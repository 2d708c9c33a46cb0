/** Where the inspector goes: it is fetched when it is first shown, after what it stands beside. */

import { useEffect } from "preact/hooks";
import type { SessionKeeper } from "../session/session_keeper";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { whenIdle } from "../ui/idle";
import { LateComponent } from "../ui/late_component";
import { chosen, hasContent, path, show, shown, wide } from "./selection";

const inspector = new LateComponent<{ session: SessionStore }>(async () => (await import("./inspector")).Inspector);

export function InspectorSlot({ keeper }: { keeper: SessionKeeper | null }) {
  const session = keeper?.store.value ?? null;
  const visible = shown.value && session !== null;
  const hasCalls = session?.hasCalls.value ?? false;
  useEffect(() => {
    hasContent.value = hasCalls;
  }, [hasCalls]);
  useEffect(() => {
    chosen.value = null;
    path.value = ".";
  }, [keeper]);
  useEffect(() => {
    if (visible) return whenIdle(() => inspector.prefetch());
  }, [visible]);
  if (!visible) return null;
  const Inspector = inspector.value;
  return (
    <>
      {wide.value ? null : <div class="inspector-veil" onClick={() => show(false)} />}
      {Inspector === null ? <div class="inspector" id="inspector" /> : <Inspector session={session} />}
    </>
  );
}

export function InspectorButton() {
  return (
    <button
      type="button"
      class="chip inspector-toggle"
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

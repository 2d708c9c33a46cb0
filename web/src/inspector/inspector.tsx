/** Beside the transcript: one call whole, the files, what was changed, what the model is told. */

import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { listShown } from "../navigation/panels";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { Notice } from "../ui/notice";
import { CallTab } from "./call_tab";
import { ChangesTab } from "./changes_tab";
import { ContextTab } from "./context_tab";
import { FilesTab } from "./files_tab";
import { show, type Tab, tab, wide } from "./selection";

const TABS: Record<Tab, ComponentType<{ session: SessionStore }>> = {
  call: CallTab,
  files: FilesTab,
  changes: ChangesTab,
  context: ContextTab,
};
const NAMES = Object.keys(TABS) as Tab[];

export function Inspector({ session }: { session: SessionStore }) {
  const ref = useRef<HTMLElement>(null);
  const over = !wide.value;
  useEffect(() => {
    if (!over) return;
    const before = document.activeElement;
    ref.current?.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, [over]);
  const Shown = TABS[tab.value];
  return (
    <aside
      ref={ref}
      id="inspector"
      class="inspector"
      aria-label={texts.inspector.label}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !over || event.defaultPrevented) return;
        // A dialog that it has opened is left first.
        if ((event.target as Element).closest("dialog") !== null) return;
        event.preventDefault();
        event.stopPropagation();
        show(false);
      }}
    >
      <div class="inspector-tabs">
        <div role="tablist" aria-label={texts.inspector.label} onKeyDown={onArrow}>
          {NAMES.map((name) => (
            <button
              type="button"
              key={name}
              id={`tab-${name}`}
              role="tab"
              aria-selected={tab.value === name}
              aria-controls="tabpanel"
              tabIndex={tab.value === name ? 0 : -1}
              onClick={() => (tab.value = name)}
            >
              {texts.inspector.tabs[name]}
            </button>
          ))}
        </div>
        <button type="button" class="button-x" aria-label={texts.inspector.hide} onClick={() => show(false)}>
          <span aria-hidden="true">✕</span>
        </button>
      </div>
      <div id="tabpanel" class="inspector-panel" role="tabpanel" aria-labelledby={`tab-${tab.value}`} tabIndex={0}>
        <Shown key={session.id} session={session} />
      </div>
      <Notice isHere={over && !listShown.value} />
    </aside>
  );
}

function onArrow(event: KeyboardEvent): void {
  const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1 };
  const step = steps[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const next = NAMES[(NAMES.indexOf(tab.value) + step + NAMES.length) % NAMES.length]!;
  tab.value = next;
  document.getElementById(`tab-${next}`)?.focus();
}

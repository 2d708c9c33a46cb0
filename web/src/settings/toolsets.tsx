/** Which tools a session has, by the sets that they come in. */

import { toolkit } from "../session/choices";
import { texts } from "../texts";

interface Props {
  /** The names of its tools; undefined: as the server decides, which is all of them. */
  chosen: readonly string[] | undefined;
  onChange: (tools: string[]) => void;
}

export function Toolsets({ chosen, onChange }: Props) {
  const { tools, toolsets } = toolkit.value;
  if (toolsets.length === 0) return null;
  const all = tools.map((tool) => tool.name);
  const has = new Set(chosen ?? all);
  const held = all.filter((name) => has.has(name)).length;
  const sum =
    held === all.length ? texts.tools.all : held === 0 ? texts.tools.none : texts.tools.some(held, all.length);
  const put = (names: readonly string[], on: boolean): void => {
    const next = new Set(has);
    for (const name of names)
      if (on) next.add(name);
      else next.delete(name);
    // In the order in which the server has them, so that the same choice is the same list.
    onChange(all.filter((name) => next.has(name)));
  };
  return (
    <details class="toolsets">
      <summary>
        <span>{texts.tools.label}</span>
        <span>{sum}</span>
      </summary>
      {toolsets.map((set) => {
        const names = tools.filter((tool) => tool.toolset === set).map((tool) => tool.name);
        const count = names.filter((name) => has.has(name)).length;
        return (
          <label key={set} class="fields-check" title={names.join(", ")}>
            <input
              type="checkbox"
              checked={count === names.length}
              indeterminate={count > 0 && count < names.length}
              onChange={(event) => put(names, event.currentTarget.checked)}
            />
            <span>{texts.tools.set(set, names.length)}</span>
          </label>
        );
      })}
    </details>
  );
}

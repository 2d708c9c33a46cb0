/** A setting that is a list: each entry can be removed, an ordered one moved, a new one added. */

import { useEffect, useState } from "preact/hooks";
import { configuration as words } from "../texts/configuration";
import { Button } from "../ui/button";

interface Props {
  id: string;
  label: string;
  items: readonly string[];
  suggestions: readonly string[];
  /** What holds while there is no entry. */
  standard: string;
  ordered: boolean;
  onChange: (items: readonly string[]) => void;
}

export function ListControl({ id, label, items, suggestions, standard, ordered, onChange }: Props) {
  const [text, setText] = useState("");
  /** What is being added; its text stays until it is in the list, for the change may be refused. */
  const [added, setAdded] = useState("");
  const add = (): void => {
    const item = text.trim();
    setAdded(item);
    if (item !== "" && !items.includes(item)) onChange([...items, item]);
  };
  useEffect(() => {
    if (added === "" || !items.includes(added)) return;
    setAdded("");
    if (text.trim() === added) setText("");
  }, [added, items]);
  const moveUp = (index: number): void => {
    const next = [...items];
    next.splice(index - 1, 2, items[index]!, items[index - 1]!);
    onChange(next);
  };
  return (
    <div class="setting-field-list">
      {items.length === 0 ? null : (
        <ol aria-labelledby={`${id}-label`}>
          {items.map((item, index) => (
            <li key={item}>
              <code dir="auto">{item}</code>
              {ordered && index > 0 ? (
                <button
                  type="button"
                  class="button-quiet"
                  aria-label={words.moveUp(item)}
                  onClick={() => moveUp(index)}
                >
                  <span aria-hidden="true">↑</span>
                </button>
              ) : null}
              <button
                type="button"
                class="button-x"
                aria-label={words.removeNamed(item)}
                onClick={() => onChange(items.filter((other) => other !== item))}
              >
                <span aria-hidden="true">✕</span>
              </button>
            </li>
          ))}
        </ol>
      )}
      <form
        class="setting-field-line"
        onSubmit={(event) => {
          event.preventDefault();
          add();
        }}
      >
        <input
          id={id}
          dir="auto"
          autocomplete="off"
          spellcheck={false}
          list={`${id}-list`}
          placeholder={items.length === 0 ? standard : ""}
          aria-describedby={`${id}-help`}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <Button type="submit" label={words.addTo(label)}>
          {words.add}
        </Button>
      </form>
      <datalist id={`${id}-list`}>
        {suggestions
          .filter((name) => !items.includes(name))
          .map((name) => (
            <option key={name} value={name} />
          ))}
      </datalist>
    </div>
  );
}

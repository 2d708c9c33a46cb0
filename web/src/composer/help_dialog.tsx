/** All commands and keys, for whoever asks. */

import { texts } from "../texts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { SLASH_COMMANDS } from "./parse_text";
import { helpShown } from "./run_command";

export function HelpDialog() {
  if (!helpShown.value) return null;
  const close = (): void => {
    helpShown.value = false;
  };
  const commands = SLASH_COMMANDS.map(({ name, takes }) => [
    `/${name}${takes === "nothing" ? "" : ` ${texts.commands.takes[name] ?? ""}`}`,
    texts.commands.about[name],
  ]);
  return (
    <Dialog title={texts.help.title} onClose={close} kind="help-dialog">
      <h2>{texts.help.title}</h2>
      <dl>
        {[...commands, ...texts.help.prefixes].map(([name, about]) => (
          <div key={name}>
            <dt>
              <code>{name}</code>
            </dt>
            <dd>{about}</dd>
          </div>
        ))}
      </dl>
      <h3>{texts.help.keys}</h3>
      <dl>
        {texts.help.keyList.map(([key, about]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{about}</dd>
          </div>
        ))}
      </dl>
      <div class="layout-buttons">
        <Button onClick={close}>{texts.close}</Button>
      </div>
    </Dialog>
  );
}
